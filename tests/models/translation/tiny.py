"""A network small enough to compare everything with everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.space import Architecture, SearchSpace, translation_space

SPACE = translation_space(
    "tiny",
    embed_dims=(16, 12),
    ffn_dims=(24, 16, 8),
    heads=(4, 2),
    encoder_layers=(3, 2, 1),
    decoder_layers=(3, 2, 1),
    qkv_dim=8,
)
PAD, VOCAB, SOURCE_VOCAB = 1, 19, 23
MIXTURES = {
    "none": MoSConfig(),
    "layer": MoSConfig(kind="layer", router_hidden=8),
    "three": MoSConfig(kind="layer", router_hidden=8, experts=3),
    "neuron": MoSConfig(kind="neuron", router_hidden=8),
}
EMBEDDINGS: dict[str, dict[str, bool]] = {
    "separate": {},
    "decoder": {"share_decoder_embeddings": True},
    "all": {"share_all_embeddings": True},
}


def build(mos: str = "none", embeddings: str = "separate", space: SearchSpace = SPACE, **config: Any) -> TranslationNet:
    torch.manual_seed(5)
    settings = TranslationConfig(mos=MIXTURES[mos], **EMBEDDINGS[embeddings], **config)
    net = TranslationNet(space, VOCAB if embeddings == "all" else SOURCE_VOCAB, VOCAB, settings)
    with torch.no_grad():  # biases and norms start as constants, which would hide mistakes
        for parameter in net.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return net


def architectures() -> dict[str, Architecture]:
    """Smallest, largest, random ones, and one that reads one, two and three layers of unequal width."""
    rng = np.random.default_rng(3)
    return {
        "smallest": SPACE.smallest(),
        "largest": SPACE.largest(),
        "random1": SPACE.sample(rng),
        "random2": SPACE.sample(rng),
        "mixed": Architecture(
            {
                "qkv_dim": 8,
                "encoder.embed_dim": 12,
                "encoder.layers": 3,
                "encoder.ffn_dim": [8, 24, 16],
                "encoder.self_heads": [4, 2, 4],
                "decoder.embed_dim": 16,
                "decoder.layers": 3,
                "decoder.ffn_dim": [16, 8, 24],
                "decoder.self_heads": [2, 4, 2],
                "decoder.cross_heads": [4, 2, 2],
                "decoder.arbitrary_cross": [2, -1, 1],
            }
        ),
        "shallow": Architecture(
            {
                "qkv_dim": 8,
                "encoder.embed_dim": 16,
                "encoder.layers": 1,
                "encoder.ffn_dim": [16],
                "encoder.self_heads": [2],
                "decoder.embed_dim": 12,
                "decoder.layers": 2,
                "decoder.ffn_dim": [24, 16],
                "decoder.self_heads": [4, 2],
                "decoder.cross_heads": [2, 4],
                "decoder.arbitrary_cross": [2, 1],
            }
        ),
    }


ARCHITECTURES = architectures()
every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


def sentences(*lengths: int, seed: int = 0, left: bool = False) -> Tensor:
    """Random tokens, padded on the right (or left) to the longest."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths, strict=True):
        tokens = torch.randint(2, VOCAB, (length,), generator=generator)
        row[-length if left else 0 : None if left else length] = tokens
    return rows


def close(got: Tensor, want: Tensor, tolerance: float = 1e-5, what: str = "") -> None:
    torch.testing.assert_close(got, want, atol=tolerance, rtol=tolerance, msg=lambda m: f"{what} {m}")


def extract(net: TranslationNet, architecture: Architecture) -> TranslationNet:
    """The static network of an architecture."""
    config = TranslationConfig(
        share_all_embeddings=net.config.share_all_embeddings,
        share_decoder_embeddings=net.config.share_decoder_embeddings,
        norm_first=net.config.norm_first,
        dropout=net.config.dropout,
        activation_dropout=net.config.activation_dropout,
    )
    source_vocab = VOCAB if config.share_all_embeddings else SOURCE_VOCAB
    static = TranslationNet(SearchSpace.of(architecture, like=SPACE), source_vocab, VOCAB, config)
    static.load_state_dict(net.static_state(architecture), strict=True)
    return static
