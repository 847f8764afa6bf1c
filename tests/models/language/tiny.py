"""A language model small enough to compare everything with everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.space import Architecture, SearchSpace
from nas_core.space.language import language_space, with_context

PAD, VOCAB = 1, 19
SPACE = language_space(
    "tiny",
    layers=(4, 3, 2, 1),
    embed_dims=(16, 12),
    ffn_dims=(24, 16, 8),
    heads=(4, 2),
    head_dim=8,
    context_length=60,
    attention=("softmax", "linear"),
)
MIXTURES = {
    "none": MoSConfig(),
    "layer": MoSConfig(kind="layer", router_hidden=8),
    "neuron": MoSConfig(kind="neuron", router_hidden=8),
}
KINDS = {
    "softmax": ("softmax",) * 3,
    "linear": ("linear",) * 3,
    "mixed": ("softmax", "linear", "linear"),
    "turned": ("linear", "softmax", "softmax"),
}
"""Kinds of attention of a network of three layers."""


def build(mos: str = "none", space: SearchSpace = SPACE, **config: Any) -> LanguageNet:
    torch.manual_seed(5)
    net = LanguageNet(space, VOCAB, LanguageConfig(mos=MIXTURES[mos], **config))
    with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return net


def architecture(kinds: str = "mixed", width: int = 12) -> Architecture:
    """Three layers of unequal sizes."""
    genes = {"layers": 3, "embed_dim": width, "ffn_dim": [8, 24, 16], "heads": [4, 2, 4], "attention": KINDS[kinds]}
    return SPACE.validate(Architecture({**SPACE.fixed, **genes}))


def architectures() -> dict[str, Architecture]:
    """The smallest, the largest, random ones, and those of all kinds of attention."""
    rng = np.random.default_rng(3)
    drawn = {"smallest": SPACE.smallest(), "largest": SPACE.largest(), "random": SPACE.sample(rng)}
    return drawn | {kinds: architecture(kinds) for kinds in KINDS}


def sentences(*shape: int, seed: int = 0) -> Tensor:
    """Random tokens of that shape, none of them padding."""
    return torch.randint(2, VOCAB, shape, generator=torch.Generator().manual_seed(seed))


def network_for(context: int, *kinds: str) -> tuple[LanguageNet, Architecture]:
    """A network for long sequences with a layer for each of the kinds, and its architecture."""
    genes = {"layers": len(kinds), "embed_dim": 16, "ffn_dim": 8, "heads": 2, "attention": list(kinds)}
    architecture = Architecture(
        {**SPACE.fixed, **genes, **{gene: [genes[gene]] * len(kinds) for gene in ("ffn_dim", "heads")}}
    )
    space = with_context(SPACE, context)
    own = Architecture({**architecture.to_dict(), "context_length": context})
    return build(space=SearchSpace.of(space.validate(own), like=space)), own


def close(got: Tensor, want: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(got, want, atol=tolerance, rtol=tolerance)
