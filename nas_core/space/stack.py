"""Genes of models with one stack of transformer layers: image, language and masked language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nas_core.errors import ArchitectureError
from nas_core.space.architecture import Architecture
from nas_core.space.choice import Choice

CODES = {"softmax": 1.0, "linear": 0.0}
"""Numbers that represent attention types in encodings."""
LINEAR_FIRST = {"linear": 0.0, "softmax": 1.0}
"""``CODES`` in the order of translation and masked language spaces."""


class TransformerLayer(NamedTuple):
    """Sizes and attention type of one layer."""

    ffn_dim: int
    heads: int
    qkv_dim: int
    attention: str


def transformer_layers(
    architecture: Architecture, ffn_dims: Sequence[int] | None = None, qkv_dims: Sequence[int] | None = None
) -> tuple[TransformerLayer, ...]:
    """Return the layers of an architecture. Without a gene ``heads``, there are ``embed_dim // head_dim`` heads.

    Args:
        ffn_dims: FFN width of each layer, instead of a gene ``ffn_dim``.
        qkv_dims: width of the queries of each layer, summed over heads, instead of a gene ``head_dim``.
    """
    depth = architecture.number("layers")
    ffn = per_layer(architecture, "ffn_dim", depth) if ffn_dims is None else ffn_dims
    if "heads" in architecture:
        heads = per_layer(architecture, "heads", depth)
    else:
        heads = [architecture.number("embed_dim") // architecture.number("head_dim")] * depth
    kinds = per_layer(architecture, "attention", depth) if "attention" in architecture else ["softmax"] * depth
    if qkv_dims is None:
        head_dim = architecture.number("head_dim")
        qkv_dims = [int(number) * head_dim for number in heads]
    layers = zip(ffn, heads, qkv_dims, kinds, strict=True)
    return tuple(TransformerLayer(int(f), int(h), width, str(kind)) for f, h, width, kind in layers)


def per_layer(architecture: Architecture, gene: str, depth: int) -> list[Any]:
    """Return one value of a gene per layer. A value of the network is repeated."""
    value = architecture[gene]
    if not isinstance(value, tuple):
        return [value] * depth
    if len(value) != depth or not depth:
        raise ArchitectureError(f"architecture has {gene} = {list(value)}; expected {depth} options, one per layer")
    return list(value)


def size_choices(
    layers: Sequence[int], embed_dims: Sequence[int], heads: Sequence[Any], **ffn: Sequence[Any]
) -> list[Choice]:
    """Create the choices of sizes.

    Args:
        heads: one list of options, or one per layer.
        ffn: likewise, by gene name.
    """
    depth = max(layers)
    layered = [Choice.make(gene, options, "layers", depth) for gene, options in {**ffn, "heads": heads}.items()]
    return [Choice.make("layers", layers), Choice.make("embed_dim", embed_dims), *layered]


def attention_codes(kinds: Sequence[Any], published: Mapping[Any, float]) -> dict[Any, float]:
    """Return numbers for attention types: ``published`` ones, and evenly spaced ones in (0, 1) for others."""
    rows = [kind if isinstance(kind, list | tuple) else (kind,) for kind in kinds]
    others = [kind for kind in dict.fromkeys(kind for row in rows for kind in row) if kind not in published]
    return {**published, **{kind: (index + 1) / (len(others) + 1) for index, kind in enumerate(others)}}


def attention_choice(kinds: Sequence[Any], depth: int, codes: Mapping[str, float] = CODES) -> Choice:
    return Choice.make("attention", kinds, "layers", depth, attention_codes(kinds, codes))
