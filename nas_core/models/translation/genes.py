"""The genes that a translation network has, and what their options may be."""

from __future__ import annotations

from nas_core.errors import SpaceError
from nas_core.layers.attention.softmax import ATTENTION
from nas_core.space import Option, SearchSpace
from nas_core.space.hat import READ_LAYERS
from nas_core.space.mformer import ATTENTION_GENES

__all__ = ["GENES", "attention_options", "check_translation_space", "linear_encoder", "linear_limits"]

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
GENES = (*_SIZES, *_HEADS, _CROSS)
"""Those that each translation architecture has."""


def check_translation_space(space: SearchSpace) -> None:
    """Raises:
    SpaceError: a gene is missing, a size is no positive integer, a number of heads does not divide ``qkv_dim``, or an
        option of ``decoder.arbitrary_cross`` is none of HAT's, or a kind of attention is unknown.
    """
    widths = _options(space, "qkv_dim")
    for gene in (*_SIZES, *_HEADS):
        for option in _options(space, gene):
            if not isinstance(option, int) or option < 1:
                raise SpaceError(f"space {space.name!r} has {gene} = {option!r}; expected an integer above 0")
    for gene in _HEADS:
        for heads in _options(space, gene):
            for width in widths:
                if int(width) % int(heads):
                    raise SpaceError(f"space {space.name!r} has {gene} = {heads}, no divisor of qkv_dim {width}")
    for option in _options(space, _CROSS):
        if option not in READ_LAYERS:
            raise SpaceError(f"space {space.name!r} has {_CROSS} = {option!r}; expected one of {sorted(READ_LAYERS)}")
    for gene in ATTENTION_GENES:
        for kinds in attention_options(space, gene):
            if wrong := [kind for kind in kinds if kind not in ATTENTION]:
                raise SpaceError(f"space {space.name!r} has {gene} = {wrong[0]!r}; expected one of {list(ATTENTION)}")


def attention_options(space: SearchSpace, gene: str) -> list[tuple[str, ...]]:
    """The kinds of attention that each layer may use; softmax where the space does not choose."""
    chosen = next((choice for choice in space.choices if choice.name == gene), None)
    if chosen is not None:
        return [tuple(str(option) for option in row) for row in chosen.options]
    layers = max(int(option) for option in _options(space, f"{gene.split('.')[0]}.layers"))
    return [(str(space.fixed.get(gene, "softmax")),)] * layers


def linear_limits(space: SearchSpace) -> tuple[bool, bool]:
    """Whether the M of the decoder's linear attention bounds the source, and the target, of networks of this space.

    Attention of the decoder to itself reads the target, attention across reads both; the encoder's knows its sentence.
    """
    decoder, cross = (_linear(space, gene) for gene in ("decoder.self_attention", "decoder.cross_attention"))
    return cross, decoder or cross


def linear_encoder(space: SearchSpace) -> bool:
    """Whether an encoder layer may have linear attention."""
    return _linear(space, "encoder.self_attention")


def _linear(space: SearchSpace, gene: str) -> bool:
    return any("linear" in kinds for kinds in attention_options(space, gene))


def _options(space: SearchSpace, gene: str) -> list[Option]:
    if gene in space.fixed:
        return [space.fixed[gene]]
    if gene not in [choice.name for choice in space.choices]:
        raise SpaceError(f"space {space.name!r} has no gene {gene!r}, which a translation network needs")
    return [option for row in space.choice(gene).options for option in row]
