"""Search spaces of masked language models, based on RoBERTa.

Genes are those of :mod:`nas_core.space.language`, with ``sequence_length`` (tokens, for costs) instead of
``context_length``. Without ``heads``, there are ``embed_dim // head_dim`` heads, as in BERT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import LINEAR_FIRST, attention_choice, size_choices


def masked_lm_space(
    name: str,
    *,
    layers: Sequence[int],
    embed_dims: Sequence[int],
    ffn_dims: Sequence[Any],
    heads: Sequence[Any],
    head_dim: int,
    sequence_length: int,
    attention: Sequence[Any] = ("softmax",),
) -> SearchSpace:
    """Create a search space of masked language models.

    Args:
        ffn_dims, heads: one list of options, or one list per layer.
        attention: names in ``nas_core.layers.attention.ATTENTION_KINDS``, or one list of names per layer.
    """
    choices = size_choices(layers, embed_dims, heads, ffn_dim=ffn_dims)
    if tuple(attention) != ("softmax",):
        choices.append(attention_choice(attention, max(layers), LINEAR_FIRST))
    return SearchSpace(name, choices, {"head_dim": head_dim, "sequence_length": sequence_length})


@register_space
def roberta_base() -> SearchSpace:
    """Return a search space of RoBERTa base (Liu et al. 2019) and smaller models."""
    return masked_lm_space(
        "roberta_base",
        layers=tuple(range(12, 5, -1)),
        embed_dims=(768, 672, 576, 480),
        ffn_dims=(3072, 2304, 1536, 768),
        heads=(12, 9, 6),
        head_dim=64,
        sequence_length=512,
    )


def _small(name: str, attention: Sequence[str]) -> SearchSpace:
    return masked_lm_space(
        name,
        layers=(4, 3, 2),
        embed_dims=(128, 112, 96),
        ffn_dims=(512, 384, 256, 128),
        heads=(4, 3, 2),
        head_dim=32,
        sequence_length=128,
        attention=attention,
    )


@register_space
def roberta_small() -> SearchSpace:
    """Return a small RoBERTa space: up to 4 layers, width 128."""
    return _small("roberta_small", ("softmax",))


@register_space
def mformer_roberta_small() -> SearchSpace:
    """Return ``roberta_small`` with a choice of softmax or linear attention per layer."""
    return _small("mformer_roberta_small", ("softmax", "linear"))
