"""The genes that an image network has, and the largest options of each layer."""

from __future__ import annotations

from nas_core.errors import SpaceError, unknown_choice
from nas_core.layers.attention.softmax import ATTENTION
from nas_core.space import Option, SearchSpace

__all__ = ["GENES", "attention_options", "check_image_space", "widest_layers"]

_CONSTANT = ("image_size", "patch_size", "head_dim", "relative_clip")
GENES = ("layers", "embed_dim", "heads", *_CONSTANT)
"""Those that each image architecture has, beside ``ffn_dim`` or ``mlp_ratio``."""


def check_image_space(space: SearchSpace) -> None:
    """Raises:
    SpaceError: a gene is missing, a size is no positive number, or one that is built once has several options.
    UnknownChoiceError: a kind of attention that does not exist.
    """
    ffn = "ffn_dim" if _has(space, "ffn_dim") else "mlp_ratio"
    for gene in ("layers", "embed_dim", ffn, "heads", *_CONSTANT):
        options = {option for row in _options(space, gene) for option in row}
        for option in options:
            smallest = 0 if gene == "relative_clip" else 1
            kind = int | float if gene == "mlp_ratio" else int
            if not isinstance(option, kind) or (option < smallest and gene != "mlp_ratio") or option < 0:
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected a number above 0")
        if gene in _CONSTANT and len(options) > 1:
            raise SpaceError(f"space {space.name!r} searches {gene} {sorted(options, key=float)}; expected one value")
    for row in attention_options(space):
        for name in row:
            if name not in ATTENTION:
                raise unknown_choice(f"attention in space {space.name!r}", name, ATTENTION)


def widest_layers(space: SearchSpace) -> list[tuple[int, int]]:
    """The largest feed-forward width and the largest width of queries of each layer."""
    if _has(space, "ffn_dim"):
        ffn = [max(int(option) for option in row) for row in _per_layer(space, "ffn_dim")]
    else:
        width = max(int(option) for option in _options(space, "embed_dim")[0])
        ffn = [round(max(float(option) for option in row) * width) for row in _per_layer(space, "mlp_ratio")]
    head_dim = int(_options(space, "head_dim")[0][0])
    heads = [max(int(option) for option in row) for row in _per_layer(space, "heads")]
    return [(f, h * head_dim) for f, h in zip(ffn, heads, strict=True)]


def attention_options(space: SearchSpace) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use."""
    rows = _per_layer(space, "attention") if _has(space, "attention") else [("softmax",)] * _depth(space)
    return [tuple(str(option) for option in row) for row in rows]


def _has(space: SearchSpace, gene: str) -> bool:
    return gene in space.fixed or gene in [choice.name for choice in space.choices]


def _options(space: SearchSpace, gene: str) -> list[tuple[Option, ...]]:
    if not _has(space, gene):
        raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which an image network needs")
    return [(space.fixed[gene],)] if gene in space.fixed else list(space.choice(gene).options)


def _depth(space: SearchSpace) -> int:
    return max(int(option) for option in _options(space, "layers")[0])


def _per_layer(space: SearchSpace, gene: str) -> list[tuple[Option, ...]]:
    rows = _options(space, gene)
    return rows if len(rows) == _depth(space) else [rows[0]] * _depth(space)
