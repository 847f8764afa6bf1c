"""The genes that a language model has, and what their options may be."""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.errors import SpaceError, unknown_choice
from nas_core.layers.attention.kinds import KINDS
from nas_core.space import Option, SearchSpace

__all__ = ["GENES", "attention_options", "bounded", "check_language_space", "widest_layers"]

_CONSTANT = ("head_dim", "context_length")
GENES = ("layers", "embed_dim", "heads", "ffn_dim", *_CONSTANT)
"""Those that each language architecture has."""


def check_language_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a language model, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive integer, or one that is built once has several options.
        UnknownChoiceError: a kind of attention that does not exist, or cannot stand in a decoder.
    """
    for gene in GENES:
        options = {option for row in _options(space, gene) for option in row}
        for option in options:
            if not isinstance(option, int) or option < 1:
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected an integer above 0")
        if gene in _CONSTANT and len(options) > 1:
            raise SpaceError(f"space {space.name!r} searches {gene} {sorted(options, key=float)}; expected one value")
    known = [name for name, kind in KINDS.items() if "decoder" in kind.places]
    for name in {name for row in attention_options(space) for name in row}:
        if name not in known:
            raise unknown_choice(f"attention in space {space.name!r}", name, known)


def attention_options(space: SearchSpace) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use; softmax where the space does not choose."""
    if not _has(space, "attention"):
        return [("softmax",)] * _depth(space)
    return [tuple(str(option) for option in row) for row in _per_layer(space, "attention")]


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    """The largest feed-forward width and the largest width of queries of each layer."""
    head_dim = int(_options(space, "head_dim")[0][0])
    rows = zip(_per_layer(space, "ffn_dim"), _per_layer(space, "heads"), strict=True)
    return [(max(map(int, ffn)), max(map(int, heads)) * head_dim) for ffn, heads in rows]


def bounded(space: SearchSpace) -> bool:
    """Whether a layer may have attention that is made for a longest sequence."""
    return any(KINDS.get(kind).is_bounded for kinds in attention_options(space) for kind in kinds)


def _has(space: SearchSpace, gene: str) -> bool:
    return gene in space.fixed or gene in [choice.name for choice in space.choices]


def _options(space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
    if not _has(space, gene):
        raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which a language model needs")
    return [(space.fixed[gene],)] if gene in space.fixed else space.choice(gene).options


def _depth(space: SearchSpace) -> int:
    return max(int(option) for option in _options(space, "layers")[0])


def _per_layer(space: SearchSpace, gene: str) -> Sequence[tuple[Option, ...]]:
    rows = _options(space, gene)
    return rows if len(rows) == _depth(space) else [rows[0]] * _depth(space)
