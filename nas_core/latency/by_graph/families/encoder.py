"""Encoders of translation networks: subnets of a space of HAT's shape, with softmax and linear attention mixed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.latency.by_graph.families.family import Built, Family, Settings
from nas_core.space import Architecture, SearchSpace, translation_space, with_attention

_WORDS = 2000
_FIRST_WORD = 4
"""Smaller token numbers are fairseq's special symbols."""


class _Encoder(nn.Module):
    """Token numbers (1, S) to the encoder's output (1, S, C)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        from nas_core.models.translation.net import TranslationNet

        self.architecture = architecture
        self.net = TranslationNet(SearchSpace.of(architecture, like=_space()), _WORDS, _FIRST_WORD + 1)
        self._subnet = self.net.select(architecture)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> _Encoder:
        """The subnet holds slices of the weights, which have to follow them to another device."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._subnet = self.net.select(self.architecture)
        return self

    def forward(self, tokens: Tensor) -> Tensor:
        return self.net.encode(self._subnet, tokens, padded=False).outputs[0]


@cache
def _space() -> SearchSpace:
    plain = translation_space(
        "encoder_family",
        embed_dims=(256, 384, 512, 640),
        ffn_dims=(512, 1024, 1536, 2048, 3072),
        heads=(2, 4, 8),
        encoder_layers=(1, 2, 3, 4, 5, 6),
        decoder_layers=(1,),
        qkv_dim=512,
    )
    return with_attention(plain, plain.name)


def _sample(rng: np.random.Generator) -> Settings:
    return {"architecture": _space().sample(rng).to_dict(), "source_length": int(rng.integers(10, 81))}


def _build(settings: Settings) -> Built:
    encoder = _Encoder(Architecture(settings["architecture"]))
    return encoder, (torch.randint(_FIRST_WORD, _WORDS, (1, settings["source_length"])),)


ENCODER = Family(
    "encoder", "translation encoders of HAT's genes, softmax and linear attention; length", _sample, _build
)
