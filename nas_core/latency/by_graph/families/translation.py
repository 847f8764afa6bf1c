"""Families of translation networks: encoders, and decoder steps with caches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.latency.by_graph.families.family import Built, Family, Settings, draw
from nas_core.space import Architecture, SearchSpace, translation_space, with_attention

_WORDS = 2000
_FIRST_WORD = 4  # first token index after fairseq's special symbols
_PARTS = ("encoder", "decoder_step")
_OPTIONS = (("softmax",), ("softmax", "linear"))
_VOCABULARIES = (2000, 4000, 6000, 8000, 10000, 16000, 32000)
_UNREAD = 8
_LONGEST = 80  # longest sentence, in tokens
_MAX_PAST = 60  # longest prefix of a decoder step, in tokens
_MAX_ROWS = 8


class _Size(NamedTuple):
    embed_dims: tuple[int, ...]
    ffn_dims: tuple[int, ...]
    longest: int
    """Longest encoder sentence in tokens, for passes below 50 ms."""


_SIZES = {
    128: _Size((96, 128, 192), (256, 384, 512, 768), _LONGEST),
    256: _Size((192, 256, 384), (512, 768, 1024, 1536), _LONGEST),
    512: _Size((384, 512, 640), (512, 1024, 1536, 2048), 50),
}


class _Encoder(nn.Module):
    """Encoder from token indices ``(1, S)`` to ``(1, S, C)``."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        from nas_core.models.translation.net import TranslationNet

        self.architecture = architecture
        self.net = TranslationNet(SearchSpace.of(architecture, like=_encoder_space()), _WORDS, _FIRST_WORD + 1)
        self._subnet = self.net.select(architecture)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> _Encoder:
        """Select the subnet again, since it holds slices of the weights."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._subnet = self.net.select(self.architecture)
        return self

    def forward(self, tokens: Tensor) -> Tensor:
        return self.net.encode(self._subnet, tokens, padded=False).outputs[0]


@cache
def _encoder_space() -> SearchSpace:
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


def _sample_encoder(rng: np.random.Generator) -> Settings:
    return {"architecture": _encoder_space().sample(rng).to_dict(), "source_length": int(rng.integers(10, 81))}


def _build_encoder(settings: Settings) -> Built:
    encoder = _Encoder(Architecture(settings["architecture"]))
    return encoder, (torch.randint(_FIRST_WORD, _WORDS, (1, settings["source_length"])),)


ENCODER = Family(
    "encoder",
    "translation encoders of HAT's genes, softmax and linear attention; length",
    _sample_encoder,
    _build_encoder,
)


@cache
def _space(qkv_dim: int, encoder: tuple[str, ...], decoder: tuple[str, ...]) -> SearchSpace:
    depths = (1, 2, 3, 4, 5, 6)
    plain = translation_space(
        "translation_family",
        embed_dims=_SIZES[qkv_dim].embed_dims,
        ffn_dims=_SIZES[qkv_dim].ffn_dims,
        heads=(2, 4, 8),
        encoder_layers=depths,
        decoder_layers=depths,
        qkv_dim=qkv_dim,
    )
    return with_attention(plain, plain.name, encoder, decoder, decoder)


def _sample(rng: np.random.Generator) -> Settings:
    part, qkv_dim = draw(rng, _PARTS), draw(rng, tuple(_SIZES))
    common = {
        "part": part,
        "architecture": _space(qkv_dim, draw(rng, _OPTIONS), draw(rng, _OPTIONS)).sample(rng).to_dict(),
        "vocabulary": draw(rng, _VOCABULARIES),
    }
    if part == "encoder":
        return {**common, "source_length": int(rng.integers(5, _SIZES[qkv_dim].longest + 1))}
    return {
        **common,
        "one_table": bool(rng.integers(2)),
        "source_length": int(rng.integers(5, _LONGEST + 1)),
        "past_length": int(rng.integers(1, _MAX_PAST + 1)),
        "rows": int(rng.integers(1, _MAX_ROWS + 1)),
    }


def _build(settings: Settings) -> Built:
    from nas_core.models.translation.export import part_inputs, translation_parts
    from nas_core.models.translation.net import TranslationConfig, TranslationNet

    architecture = Architecture(settings["architecture"])
    index, vocabulary = _PARTS.index(settings["part"]), settings["vocabulary"]
    source_words, target_words = (vocabulary, _UNREAD) if settings["part"] == "encoder" else (_UNREAD, vocabulary)
    source, past = settings["source_length"], settings.get("past_length", 0)
    config = TranslationConfig(share_decoder_embeddings=settings.get("one_table", False))
    net = TranslationNet(SearchSpace.of(architecture), source_words, target_words, config).eval()
    part = translation_parts(net, architecture, source, past + 1)[index]
    inputs = part_inputs(part, source, past, settings.get("rows", 1), torch.default_generator)
    _select_once(part.module.net, architecture)
    return part.module, inputs


def _select_once(net: Any, architecture: Architecture) -> None:
    select = cache(lambda device, dtype: type(net).select(net, architecture))
    net.select = lambda _: select(net.target_positions.table.device, net.target_positions.table.dtype)


TRANSLATION = Family(
    "translation",
    "exported encoders with padding mask and decoder steps with caches, softmax and linear attention; lengths, words",
    _sample,
    _build,
    batched=False,
)
