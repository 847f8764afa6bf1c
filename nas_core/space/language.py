"""Search spaces of decoder-only language models.

Genes of the network: ``layers``, ``embed_dim``, ``head_dim`` and ``context_length`` (longest sequence in tokens). Genes
of each layer: ``heads``, ``ffn_dim`` and ``attention`` (default: softmax).
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.space.architecture import Option
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import attention_choice, size_choices

_KINDS = ("softmax", "linear")


def language_space(
    name: str,
    *,
    layers: Sequence[int],
    embed_dims: Sequence[int],
    ffn_dims: Sequence[int],
    heads: Sequence[int],
    head_dim: int,
    context_length: int,
    attention: Sequence[str] = ("softmax",),
) -> SearchSpace:
    """Create a search space of language models with the same options in all layers.

    Args:
        context_length: longest sequence in tokens.
        attention: names in ``nas_core.layers.attention.ATTENTION_KINDS``. Several names give a choice per layer.
    """
    choices = size_choices(layers, embed_dims, heads, ffn_dim=ffn_dims)
    fixed: dict[str, Option] = {"head_dim": head_dim, "context_length": context_length}
    if len(attention) > 1:
        choices.append(attention_choice(attention, max(layers)))
    elif tuple(attention) != ("softmax",):
        fixed["attention"] = attention[0]
    return SearchSpace(name, choices, fixed)


def with_context(space: SearchSpace, context_length: int) -> SearchSpace:
    return SearchSpace(space.name, space.choices, {**space.fixed, "context_length": context_length})


def _base(name: str, attention: Sequence[str]) -> SearchSpace:
    return language_space(
        name,
        layers=(12, 10, 8, 6),
        embed_dims=(768, 640, 512),
        ffn_dims=(3072, 2304, 1536),
        heads=(12, 9, 6),
        head_dim=64,
        context_length=1024,
        attention=attention,
    )


def _small(name: str, attention: Sequence[str]) -> SearchSpace:
    return language_space(
        name,
        layers=(4, 3, 2),
        embed_dims=(128, 96),
        ffn_dims=(512, 384, 256),
        heads=(4, 2),
        head_dim=32,
        context_length=2048,
        attention=attention,
    )


@register_space
def language_base() -> SearchSpace:
    """Return a search space around GPT-2 small (Radford et al. 2019): up to 12 layers of width 768."""
    return _base("language_base", ("softmax",))


@register_space
def mformer_language_base() -> SearchSpace:
    """Return ``language_base`` with a choice of softmax or linear attention per layer."""
    return _base("mformer_language_base", _KINDS)


@register_space
def language_small() -> SearchSpace:
    """Return a small language model space: up to 4 layers of width 128."""
    return _small("language_small", ("softmax",))


@register_space
def mformer_language_small() -> SearchSpace:
    """Return ``language_small`` with a choice of softmax or linear attention per layer."""
    return _small("mformer_language_small", _KINDS)
