"""The spaces around a trained language model and around a trained masked language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nas_core.space import SearchSpace, language_space, masked_lm_space
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, around, depths, rounding


class StackSizes(NamedTuple):
    """Sizes of a trained network of one stack of layers, the same in all of them."""

    layers: int
    embed_dim: int
    ffn_dim: int
    heads: int
    length: int
    """Tokens of the longest sequence."""

    @property
    def head_dim(self) -> int:
        """D, by which the heads share the channels."""
        return self.embed_dim // self.heads


def language_around(name: str, sizes: StackSizes, attention: Sequence[str] = ("softmax",)) -> SearchSpace:
    """Language models of the trained one's sizes and smaller ones, each size of each layer for itself. The largest is
    the trained one.

    Args:
        attention: kinds that each layer may choose from, softmax among them.

    Raises:
        ConfigError: softmax is not among the kinds, or one may not stand there.
    """
    kinds = kinds_at(attention, ("decoder",))[0]
    return language_space(name, **_options(sizes), context_length=sizes.length, attention=kinds)


def masked_lm_around(name: str, sizes: StackSizes, attention: Sequence[str] = ("softmax",)) -> SearchSpace:
    """The same of masked language models; arguments and errors as of :func:`language_around`."""
    kinds = kinds_at(attention, ("encoder",))[0]
    return masked_lm_space(name, **_options(sizes), sequence_length=sizes.length, attention=kinds)


def _options(sizes: StackSizes) -> dict[str, Any]:
    return {
        "layers": depths(sizes.layers),
        "embed_dims": around(sizes.embed_dim, WIDTHS, rounding(sizes.embed_dim)),
        "ffn_dims": around(sizes.ffn_dim, FFN, rounding(sizes.ffn_dim)),
        "heads": around(sizes.heads, HEADS),
        "head_dim": sizes.head_dim,
    }


def trained_genes(sizes: StackSizes, **fixed: int) -> dict[str, Any]:
    """The genes of a trained network, by name, without kinds of attention; ``fixed`` are those of its kind alone."""
    genes = {"layers": sizes.layers, "embed_dim": sizes.embed_dim, **fixed, "head_dim": sizes.head_dim}
    return {**genes, "ffn_dim": (sizes.ffn_dim,) * sizes.layers, "heads": (sizes.heads,) * sizes.layers}


def language_genes(sizes: StackSizes) -> dict[str, Any]:
    """Those of a trained language model, whose longest sequence is one of them."""
    return trained_genes(sizes, context_length=sizes.length)
