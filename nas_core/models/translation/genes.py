"""Genes of translation networks: validation of spaces, options and values per layer."""

from __future__ import annotations

from typing import NamedTuple

from nas_core.errors import ArchitectureError, SpaceError
from nas_core.layers.attention.kinds import ATTENTION_KINDS
from nas_core.models.genes import StackGenes
from nas_core.space import Architecture, SearchSpace
from nas_core.space.architecture import Option
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of
from nas_core.space.stack import TransformerLayer

ROLES = dict(zip(ATTENTION_GENES, ("encoder", "decoder", "cross"), strict=True))
"""Roles of the attention genes, as in :data:`nas_core.layers.attention.kinds.ROLES`."""

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
GENES = (*_SIZES, *_HEADS, _CROSS)
"""Genes of each translation architecture."""
_CHECKED = StackGenes("a translation network", GENES, (), role="")


def check_translation_space(space: SearchSpace) -> None:
    for gene in _LAYERED:
        _options(space, gene)
        if gene in space.fixed or space.choice(gene).per is None:
            side = gene.split(".")[0]
            raise SpaceError(
                f"space {space.name!r} has one {gene} for all layers; expected options per layer with 'per:"
                f" {side}.layers'"
            )
    widths = _options(space, "qkv_dim")
    for gene in (*_SIZES, *_HEADS):
        _CHECKED.check_gene(space, gene)
    for gene in _HEADS:
        for heads in _options(space, gene):
            for width in widths:
                if "head_dim" in space.fixed:
                    _check_head_dim(space, gene, int(heads), int(width))
                elif int(width) % int(heads):
                    raise SpaceError(
                        f"space {space.name!r} has {gene} = {heads}; expected a divisor of qkv_dim {width}"
                    )
    for option in _options(space, _CROSS):
        if option not in READ_LAYERS:
            raise SpaceError(f"space {space.name!r} has {_CROSS} = {option!r}; expected one of {sorted(READ_LAYERS)}")
    for gene, role in ROLES.items():
        supported = [name for name, kind in ATTENTION_KINDS.items() if role in kind.roles]
        for name in {name for names in attention_options(space, gene) for name in names} - set(supported):
            raise SpaceError(f"space {space.name!r} has {gene} = {name!r}; expected one of {supported}")


def _check_head_dim(space: SearchSpace, gene: str, heads: int, width: int) -> None:
    size = space.fixed["head_dim"]
    if not isinstance(size, int) or size < 1 or heads * size > width:
        raise SpaceError(
            f"space {space.name!r} has {gene} = {heads} and head_dim {size!r}; expected positive numbers whose product"
            f" is at most qkv_dim {width}"
        )


def widest(space: SearchSpace, gene: str) -> list[int]:
    return [max(int(option) for option in options) for options in space.choice(gene).options]


def widest_queries(space: SearchSpace, gene: str) -> list[int]:
    """Return the largest query width of each layer. ``gene`` names the numbers of heads."""
    if "head_dim" in space.fixed:
        return [heads * int(space.fixed["head_dim"]) for heads in widest(space, gene)]
    return [max(int(width) for width in _options(space, "qkv_dim"))] * len(space.choice(gene).options)


def attention_options(space: SearchSpace, gene: str) -> list[tuple[str, ...]]:
    rows = _CHECKED.options(space, gene) if _CHECKED.has(space, gene) else [("softmax",)]
    layers = max(int(option) for option in _options(space, f"{gene.split('.')[0]}.layers"))
    return [tuple(map(str, row)) for row in (rows if len(rows) == layers else [rows[0]] * layers)]


def bounded(space: SearchSpace, role: str) -> bool:
    """Return True if attention in ``encoder``, ``decoder`` or ``cross`` has a maximum length."""
    (gene,) = (gene for gene, name in ROLES.items() if name == role)
    return any(ATTENTION_KINDS.get(kind).is_bounded for kinds in attention_options(space, gene) for kind in kinds)


def _options(space: SearchSpace, gene: str) -> list[Option]:
    return [option for row in _CHECKED.options(space, gene) for option in row]


# -- layers of an architecture -----------------------------------------------------------------------------------------


class DecoderLayer(NamedTuple):
    """Genes of one decoder layer."""

    ffn_dim: int
    heads: int
    qkv_dim: int
    attention: str
    cross_heads: int
    cross_qkv_dim: int
    cross_attention: str
    reads: int
    """Number of encoder layers that its cross-attention attends to."""


def encoder_layers(architecture: Architecture) -> list[TransformerLayer]:
    ffn, heads = _per_layer(architecture, "encoder", "ffn_dim", "self_heads")
    widths, kinds = qkv_dims(architecture, _HEADS[0]), attention_of(architecture, ATTENTION_GENES[0])
    return [TransformerLayer(*genes) for genes in zip(ffn, heads, widths, kinds, strict=True)]


def decoder_layers(architecture: Architecture) -> list[DecoderLayer]:
    ffn, heads, cross_heads = _per_layer(architecture, "decoder", "ffn_dim", "self_heads", "cross_heads")
    widths, cross_widths = (qkv_dims(architecture, gene) for gene in _HEADS[1:])
    kinds, cross_kinds = (attention_of(architecture, gene) for gene in ATTENTION_GENES[1:])
    columns = ffn, heads, widths, kinds, cross_heads, cross_widths, cross_kinds, cross_reads(architecture)
    return [DecoderLayer(*genes) for genes in zip(*columns, strict=True)]


def cross_reads(architecture: Architecture) -> list[int]:
    """Return the number of encoder layers that each decoder layer attends to."""
    (options,), layers = _per_layer(architecture, "decoder", "arbitrary_cross"), architecture.number("encoder.layers")
    for option in options:
        if option not in READ_LAYERS:
            raise ArchitectureError(f"{_CROSS} is {option!r}; expected one of {sorted(READ_LAYERS)}")
    return [min(READ_LAYERS[option], layers) for option in options]


def _per_layer(architecture: Architecture, side: str, *names: str) -> list[tuple[int, ...]]:
    depth = architecture.number(f"{side}.layers")
    columns = [architecture.numbers(f"{side}.{name}") for name in names]
    for name, numbers in zip(names, columns, strict=True):
        if depth < 1 or len(numbers) != depth:
            raise ArchitectureError(
                f"{side}.{name} is {list(numbers)} and {side}.layers {depth}; expected one number per layer"
            )
    return columns
