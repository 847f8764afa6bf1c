"""Translation networks as they are exported: the encoder with its padding mask and all that the decoder reads, and a
decoder step with its caches."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch

from nas_core.latency.by_graph.families.draws import draw
from nas_core.latency.by_graph.families.family import Built, Family, Settings
from nas_core.space import Architecture, SearchSpace, translation_space, with_attention

_PARTS = ("encoder", "decoder_step")
_OPTIONS = (("softmax",), ("softmax", "linear"))
"""Options of a side's layers in the family's space: HAT's spaces have the first alone. Draws of a seed depend on them,
so that further kinds of attention do not join them."""
_VOCABULARIES = (2000, 4000, 6000, 8000, 10000, 16000, 32000)
_UNREAD = 8
"""Words of the vocabulary on the side that a part does not read."""
_LONGEST = 80
"""Words of a sentence."""
_MOST_PAST = 60
"""Words that a step has behind it, one at least: a file cannot say that an input is empty."""
_MOST_ROWS = 8
"""Hypotheses of a step."""


class _Size(NamedTuple):
    """Widths that go together."""

    embed_dims: tuple[int, ...]
    ffn_dims: tuple[int, ...]
    longest: int
    """Most words of an encoder's sentence, for a pass of less than 50 ms."""


_SIZES = {
    128: _Size((96, 128, 192), (256, 384, 512, 768), _LONGEST),
    256: _Size((192, 256, 384), (512, 768, 1024, 1536), _LONGEST),
    512: _Size((384, 512, 640), (512, 1024, 1536, 2048), 50),
}
"""By the width of queries, keys and values."""


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
        "past_length": int(rng.integers(1, _MOST_PAST + 1)),
        "rows": int(rng.integers(1, _MOST_ROWS + 1)),
    }


def _build(settings: Settings) -> Built:
    from nas_core.models.translation.export import part_inputs, translation_parts
    from nas_core.models.translation.net import TranslationConfig, TranslationNet

    architecture = Architecture(settings["architecture"])
    index, words = _PARTS.index(settings["part"]), settings["vocabulary"]
    source_words, target_words = (words, _UNREAD) if settings["part"] == "encoder" else (_UNREAD, words)
    source, past = settings["source_length"], settings.get("past_length", 0)
    config = TranslationConfig(share_decoder_embeddings=settings.get("one_table", False))
    net = TranslationNet(SearchSpace.of(architecture), source_words, target_words, config).eval()
    part = translation_parts(net, architecture, source, past + 1)[index]
    inputs = part_inputs(part, source, past, settings.get("rows", 1), torch.default_generator)
    _select_once(part.module.net, architecture)
    return part.module, inputs


def _select_once(net: Any, architecture: Architecture) -> None:
    """Passes in torch are not timed with the selection of weights, which exported files do not have either."""
    select = cache(lambda device, dtype: type(net).select(net, architecture))
    net.select = lambda _: select(net.target_positions.table.device, net.target_positions.table.dtype)


TRANSLATION = Family(
    "translation",
    "exported encoders with padding mask and decoder steps with caches, softmax and linear attention; lengths, words",
    _sample,
    _build,
    batched=False,
)
