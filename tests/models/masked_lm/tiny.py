"""A masked language model small enough to compare everything with everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.models.masked_lm import MaskedLMConfig, MaskedLMNet
from nas_core.models.masked_lm.net import ClassHead
from nas_core.space import Architecture, SearchSpace
from nas_core.space.masked_lm import masked_lm_space

PAD, VOCAB, LONGEST = 1, 23, 12
SIZES: dict[str, Any] = {
    "layers": (3, 2, 1),
    "embed_dims": (16, 12),
    "ffn_dims": (24, 16, 8),
    "heads": (4, 3, 2),
    "head_dim": 4,
    "sequence_length": LONGEST,
}
SPACE = masked_lm_space("tiny", **SIZES)
MIXED = masked_lm_space("mixed", **SIZES, attention=("softmax", "linear"))
MIXTURES = {
    "none": MoSConfig(),
    "layer": MoSConfig(kind="layer", router_hidden=8),
    "neuron": MoSConfig(kind="neuron", router_hidden=8),
    "three": MoSConfig(kind="neuron", router_hidden=8, experts=3),
}
HEADS = (ClassHead("topic", 3, 16), ClassHead("small", 2, 5))
FORMS: dict[str, dict[str, Any]] = {
    "roberta": {},
    "prenorm": {"norm_first": True, "embedding_norm": False, "activation": "relu"},
    "untied": {"share_embeddings": False, "classification_heads": HEADS},
    "sinusoids": {"positions": "sinusoidal", "first_position": 2, "embedding_scale": None},
    "ordered": {"layer_order": (2, 0, 1), "classification_heads": HEADS},
}
every_form = pytest.mark.parametrize("form", FORMS)


def build(form: str = "roberta", space: SearchSpace = SPACE, mos: str = "none", **more: Any) -> MaskedLMNet:
    """A network whose biases, norms and positions are random, which as constants would hide mistakes."""
    torch.manual_seed(5)
    net = MaskedLMNet(space, VOCAB, MaskedLMConfig(**{**FORMS[form], "mos": MIXTURES[mos], **more}))
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return net.eval()


def architectures(space: SearchSpace = SPACE) -> dict[str, Architecture]:
    """Smallest, largest and random ones."""
    rng = np.random.default_rng(3)
    drawn = {f"random{index}": space.sample(rng) for index in range(3)}
    return {"smallest": space.smallest(), "largest": space.largest(), **drawn}


ARCHITECTURES = architectures()
every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


def sentences(seed: int = 0) -> Tensor:
    """Tokens (5, 9) with padding on the right, on the left, inside, and none."""
    tokens = torch.randint(4, VOCAB, (5, 9), generator=torch.Generator().manual_seed(seed))
    tokens[0, 5:] = tokens[1, :3] = tokens[2, 4] = tokens[4, 1:] = PAD
    return tokens


def close(got: Tensor, want: Tensor, tolerance: float = 1e-5, what: str = "") -> None:
    torch.testing.assert_close(got, want, atol=tolerance, rtol=tolerance, msg=lambda m: f"{what} {m}")


def extract(net: MaskedLMNet, architecture: Architecture) -> MaskedLMNet:
    """The static network of an architecture, in the supernet's mode."""
    static = MaskedLMNet(SearchSpace.of(architecture, like=net.space), VOCAB, net.config.static())
    static.load_state_dict(net.static_state(architecture), strict=True)
    return static.train(net.training)
