"""Search spaces around trained language models and masked language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nas_core.space import SearchSpace
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, depths, rounding, size_options


class StackSizes(NamedTuple):
    """Sizes of a trained network with equal layers."""

    layers: int
    embed_dim: int
    ffn_dim: int
    heads: int
    length: int
    """Longest sequence in tokens."""

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.heads


def language_around(name: str, sizes: StackSizes, attention: Sequence[str] = ("softmax",)) -> SearchSpace:
    """Return a space of language models up to the size of a trained one, with a choice of each size.

    Args:
        attention: attention types that each layer may choose, including softmax.
    """
    kinds = kinds_at(attention, ("decoder",))[0]
    return language_space(name, **_options(sizes), context_length=sizes.length, attention=kinds)


def masked_lm_around(name: str, sizes: StackSizes, attention: Sequence[str] = ("softmax",)) -> SearchSpace:
    """Return a space of masked language models, like :func:`language_around`."""
    kinds = kinds_at(attention, ("encoder",))[0]
    return masked_lm_space(name, **_options(sizes), sequence_length=sizes.length, attention=kinds)


def _options(sizes: StackSizes) -> dict[str, Any]:
    return {
        "layers": depths(sizes.layers),
        "embed_dims": size_options(sizes.embed_dim, WIDTHS, rounding(sizes.embed_dim)),
        "ffn_dims": size_options(sizes.ffn_dim, FFN, rounding(sizes.ffn_dim)),
        "heads": size_options(sizes.heads, HEADS),
        "head_dim": sizes.head_dim,
    }


def trained_genes(sizes: StackSizes, **fixed: int) -> dict[str, Any]:
    genes = {"layers": sizes.layers, "embed_dim": sizes.embed_dim, **fixed, "head_dim": sizes.head_dim}
    return {**genes, "ffn_dim": (sizes.ffn_dim,) * sizes.layers, "heads": (sizes.heads,) * sizes.layers}
