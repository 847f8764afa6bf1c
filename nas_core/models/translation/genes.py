"""The genes that a translation network has, and what their options may be."""

from __future__ import annotations

from nas_core.errors import SpaceError
from nas_core.layers.attention.kinds import KINDS
from nas_core.space import Option, SearchSpace
from nas_core.space.hat import READ_LAYERS
from nas_core.space.mformer import ATTENTION_GENES

PLACES = dict(zip(ATTENTION_GENES, ("encoder", "decoder", "cross"), strict=True))
"""Gene of an attention -> where it stands, as :data:`nas_core.layers.attention.PLACES` has it."""

_SIZES = (
    "qkv_dim",
    "encoder.embed_dim",
    "encoder.layers",
    "encoder.ffn_dim",
    "decoder.embed_dim",
    "decoder.layers",
    "decoder.ffn_dim",
)
_HEADS = ("encoder.self_heads", "decoder.self_heads", "decoder.cross_heads")
_CROSS = "decoder.arbitrary_cross"
_LAYERED = ("encoder.ffn_dim", "decoder.ffn_dim", *_HEADS, _CROSS)
"""Those that each layer has."""
GENES = (*_SIZES, *_HEADS, _CROSS)
"""Those that each translation architecture has."""


def check_translation_space(space: SearchSpace) -> None:
    """Check that the space has every gene of a translation network, with options that it can be built from.

    Raises:
        SpaceError: a gene is missing, or one of layers is chosen once for all of them; a size is no positive integer, a
            number of heads does not divide ``qkv_dim``, an option of ``decoder.arbitrary_cross`` is none of HAT's, or a
            kind of attention is unknown or stands in a wrong place.
    """
    for gene in _LAYERED:
        _options(space, gene)
        if gene in space.fixed or space.choice(gene).per is None:
            side = gene.split(".")[0]
            raise SpaceError(
                f"space {space.name!r} has one {gene} for all layers; expected options for each layer, 'per:"
                f" {side}.layers'"
            )
    widths = _options(space, "qkv_dim")
    for gene in (*_SIZES, *_HEADS):
        for option in _options(space, gene):
            if not isinstance(option, int) or option < 1:
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected an integer above 0")
    for gene in _HEADS:
        for heads in _options(space, gene):
            for width in widths:
                if "head_dim" in space.fixed:
                    _check_head_dim(space, gene, int(heads), int(width))
                elif int(width) % int(heads):
                    raise SpaceError(f"space {space.name!r} has {gene} = {heads}, no divisor of qkv_dim {width}")
    for option in _options(space, _CROSS):
        if option not in READ_LAYERS:
            raise SpaceError(f"space {space.name!r} has {_CROSS} = {option!r}; expected one of {sorted(READ_LAYERS)}")
    for gene, place in PLACES.items():
        for kind in {kind for kinds in attention_options(space, gene) for kind in kinds}:
            if kind not in KINDS.names() or place not in KINDS.get(kind).places:
                known = [name for name, kind in KINDS.items() if place in kind.places]
                raise SpaceError(f"space {space.name!r} has {gene} = {kind!r}; expected one of {known}")


def _check_head_dim(space: SearchSpace, gene: str, heads: int, width: int) -> None:
    """Check that so many heads of the space's ``head_dim`` fit into the widest queries.

    Raises:
        SpaceError: they do not, or the size is no number.
    """
    size = space.fixed["head_dim"]
    if not isinstance(size, int) or size < 1 or heads * size > width:
        raise SpaceError(
            f"space {space.name!r} has {gene} = {heads} heads of head_dim {size!r}; expected positive numbers whose"
            f" product is at most qkv_dim {width}"
        )


def widest_queries(space: SearchSpace, gene: str) -> list[int]:
    """The largest joint width of queries that the heads of each layer may have, for the gene of their number."""
    if "head_dim" not in space.fixed:
        return [max(int(width) for width in _options(space, "qkv_dim"))] * len(space.choice(gene).options)
    return [max(int(heads) for heads in row) * int(space.fixed["head_dim"]) for row in space.choice(gene).options]


def attention_options(space: SearchSpace, gene: str) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use; softmax where the space does not choose."""
    chosen = next((choice for choice in space.choices if choice.name == gene), None)
    if chosen is not None:
        return [tuple(str(option) for option in row) for row in chosen.options]
    layers = max(int(option) for option in _options(space, f"{gene.split('.')[0]}.layers"))
    return [(str(space.fixed.get(gene, "softmax")),)] * layers


def bounded(space: SearchSpace, place: str) -> bool:
    """Whether a layer may have attention there (``encoder``, ``decoder`` or ``cross``) that is made for a longest
    sequence."""
    (gene,) = (gene for gene, at in PLACES.items() if at == place)
    return any(KINDS.get(kind).is_bounded for kinds in attention_options(space, gene) for kind in kinds)


def _options(space: SearchSpace, gene: str) -> list[Option]:
    if gene in space.fixed:
        return [space.fixed[gene]]
    if gene not in [choice.name for choice in space.choices]:
        raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which a translation network needs")
    return [option for row in space.choice(gene).options for option in row]
