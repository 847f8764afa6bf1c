"""The genes that a masked language model has, what their options may be, and the attention of each layer."""

from __future__ import annotations

from nas_core.errors import SpaceError
from nas_core.layers.attention.kinds import KINDS, placed
from nas_core.layers.transformer import AttentionConfig
from nas_core.models.masked_lm.subnet import MaskedLMConfig
from nas_core.space import Option, SearchSpace

__all__ = [
    "GENES",
    "attention_options",
    "check_masked_lm_space",
    "layer_attention",
    "length_limit",
    "sequence_length",
    "widest_layers",
]

_CONSTANT = ("head_dim", "sequence_length")
GENES = ("layers", "embed_dim", "ffn_dim", "heads", *_CONSTANT)
"""Those that each architecture of a masked language model has."""

PLACE = "encoder"
"""Where its attention stands, as :data:`nas_core.layers.attention.PLACES` has it: in an encoder with padding."""


def check_masked_lm_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a masked language model, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, a size is no positive integer, one that is built once has several options, or a
            kind of attention is unknown or cannot stand in an encoder.
    """
    for gene in GENES:
        options = {option for row in _rows(space, gene) for option in row}
        for option in options:
            if not isinstance(option, int) or option < 1:
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected an integer above 0")
        if gene in _CONSTANT and len(options) > 1:
            raise SpaceError(f"space {space.name!r} searches {gene} {sorted(options, key=float)}; expected one value")
    known = [name for name, kind in KINDS.items() if PLACE in kind.places]
    for name in {name for row in attention_options(space) for name in row}:
        if name not in known:
            raise SpaceError(f"space {space.name!r} has attention = {name!r}; expected one of {known}")


def sequence_length(space: SearchSpace) -> int:
    """The tokens for which costs are counted."""
    return space.largest().number("sequence_length")


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    """The largest feed-forward width and the largest width of queries of each layer."""
    head_dim = int(_rows(space, "head_dim")[0][0])
    ffn, heads = ([max(int(option) for option in row) for row in _per_layer(space, g)] for g in ("ffn_dim", "heads"))
    return [(f, h * head_dim) for f, h in zip(ffn, heads, strict=True)]


def attention_options(space: SearchSpace) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use; softmax where the space does not choose."""
    rows = _per_layer(space, "attention") if _has(space, "attention") else [("softmax",)] * _depth(space)
    return [tuple(str(option) for option in row) for row in rows]


def layer_attention(space: SearchSpace, config: MaskedLMConfig) -> list[AttentionConfig]:
    """The kinds of attention of each layer of the space, with their settings."""
    own = {config.linear.name: config.linear}
    return [
        AttentionConfig(tuple(placed(own.get(name, name), PLACE, config.linear_length) for name in kinds))
        for kinds in attention_options(space)
    ]


def length_limit(space: SearchSpace, config: MaskedLMConfig) -> int | None:
    """The longest sequence that attention of the space's networks can read; None: any length."""
    bounded = any(KINDS.get(kind).is_bounded for kinds in attention_options(space) for kind in kinds)
    return config.linear_length if bounded else None


def _has(space: SearchSpace, gene: str) -> bool:
    return gene in space.fixed or gene in [choice.name for choice in space.choices]


def _rows(space: SearchSpace, gene: str) -> list[tuple[Option, ...]]:
    if not _has(space, gene):
        raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which a masked language model needs")
    return [(space.fixed[gene],)] if gene in space.fixed else list(space.choice(gene).options)


def _depth(space: SearchSpace) -> int:
    return max(int(option) for option in _rows(space, "layers")[0])


def _per_layer(space: SearchSpace, gene: str) -> list[tuple[Option, ...]]:
    rows = _rows(space, gene)
    return rows if len(rows) == _depth(space) else [rows[0]] * _depth(space)
