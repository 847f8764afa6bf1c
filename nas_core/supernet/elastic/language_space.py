"""The space around a trained language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nas_core.space import SearchSpace, language_space
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, around, depths
from nas_core.supernet.elastic.translation_space import rounding

__all__ = ["LanguageSizes", "auto_space", "trained_genes"]


class LanguageSizes(NamedTuple):
    """Sizes of a trained language model, the same in all its layers."""

    layers: int
    embed_dim: int
    ffn_dim: int
    heads: int
    context_length: int

    @property
    def head_dim(self) -> int:
        """D, by which the heads share the channels."""
        return self.embed_dim // self.heads


def auto_space(name: str, sizes: LanguageSizes, attention: Sequence[str] = ("softmax",)) -> SearchSpace:
    """Networks of the trained one's sizes and of smaller ones, each size of each layer for itself. The largest is the
    trained one.

    Args:
        attention: kinds that each layer may choose from, softmax among them.

    Raises:
        ConfigError: softmax is not among the kinds, or one may not stand there.
    """
    return language_space(
        name,
        layers=depths(sizes.layers),
        embed_dims=around(sizes.embed_dim, WIDTHS, rounding(sizes.embed_dim)),
        ffn_dims=around(sizes.ffn_dim, FFN, rounding(sizes.ffn_dim)),
        heads=around(sizes.heads, HEADS),
        head_dim=sizes.head_dim,
        context_length=sizes.context_length,
        attention=kinds_at(attention, ("decoder",))[0],
    )


def trained_genes(sizes: LanguageSizes) -> dict[str, Any]:
    """The genes of a trained network, by name, without kinds of attention."""
    genes = {"layers": sizes.layers, "embed_dim": sizes.embed_dim, "context_length": sizes.context_length}
    genes["head_dim"] = sizes.head_dim
    per_layer = {"ffn_dim": sizes.ffn_dim, "heads": sizes.heads}
    return genes | {gene: (value,) * sizes.layers for gene, value in per_layer.items()}
