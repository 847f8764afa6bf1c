"""What spaces of one stack of transformer layers share: images, language models and masked language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nas_core.errors import ArchitectureError
from nas_core.space.architecture import Architecture
from nas_core.space.attention_codes import attention_codes
from nas_core.space.choice import Choice

CODES = {"softmax": 1.0, "linear": 0.0}
"""The largest architecture is all softmax, the smallest all linear."""


class TransformerLayer(NamedTuple):
    """One layer of an architecture."""

    ffn_dim: int
    heads: int
    qkv_dim: int
    attention: str


def transformer_layers(
    architecture: Architecture, ffn_dims: Sequence[int] | None = None, qkv_dims: Sequence[int] | None = None
) -> tuple[TransformerLayer, ...]:
    """The layers of an architecture, first to last.

    Args:
        ffn_dims: hidden units of each layer, where no gene ``ffn_dim`` has them.
        qkv_dims: joint width of queries, of keys and of values in each layer, where no gene ``head_dim`` says it.

    Raises:
        ArchitectureError: a gene is missing, or has not one option per layer.
    """
    depth = architecture.number("layers")
    ffn = per_layer(architecture, "ffn_dim", depth) if ffn_dims is None else ffn_dims
    heads = per_layer(architecture, "heads", depth)
    kinds = per_layer(architecture, "attention", depth) if "attention" in architecture else ["softmax"] * depth
    if qkv_dims is None:
        head_dim = architecture.number("head_dim")
        qkv_dims = [int(number) * head_dim for number in heads]
    layers = zip(ffn, heads, qkv_dims, kinds, strict=True)
    return tuple(TransformerLayer(int(f), int(h), width, str(kind)) for f, h, width, kind in layers)


def per_layer(architecture: Architecture, gene: str, depth: int) -> list[Any]:
    """The option of each of so many layers; a fixed gene has one for all.

    Raises:
        ArchitectureError: the gene is missing, or has not one option per layer.
    """
    value = architecture[gene]
    if not isinstance(value, tuple):
        return [value] * depth
    if len(value) != depth or not depth:
        raise ArchitectureError(f"architecture has {gene} = {list(value)}, expected {depth} options, one per layer")
    return list(value)


def size_choices(
    layers: Sequence[int], embed_dims: Sequence[int], heads: Sequence[Any], **ffn: Sequence[Any]
) -> list[Choice]:
    """The sizes to choose; those of each layer are one list of options for all layers, or a list for each.

    Args:
        ffn: options of the gene that says how wide feed-forward layers are, by its name.
    """
    depth = max(layers)
    each = (Choice.make(gene, options, "layers", depth) for gene, options in {**ffn, "heads": heads}.items())
    return [Choice.make("layers", layers), Choice.make("embed_dim", embed_dims), *each]


def attention_choice(kinds: Sequence[Any], depth: int, codes: Mapping[str, float] = CODES) -> Choice:
    """The kind of attention of each layer; the largest architecture has softmax wherever it can."""
    return Choice.make("attention", kinds, "layers", depth, attention_codes(kinds, codes))
