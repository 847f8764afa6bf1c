"""BERT encoders: genes, layers and the spaces of Mixture-of-Supernets (section 4).

Genes of the network: ``layers``, ``sequence_length`` (tokens of cost formulas). Genes of the network or of a layer:
``hidden_dim``, ``heads``, ``ffn_dim`` or ``ffn_ratio`` in units of ``hidden_dim``. ``outer_dim`` is the width of the
embedding where layers differ (Ganesan et al. 2021, "SuperShaper").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nas_core.errors import ArchitectureError
from nas_core.space.architecture import Architecture, Option
from nas_core.space.choice import Choice
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import TransformerLayer, per_layer, transformer_layers

OUTER, RATIO = "outer_dim", "ffn_ratio"


def bert_space(
    name: str,
    *,
    layers: Sequence[int],
    hidden_dims: Sequence[Any],
    heads: Sequence[int],
    ffn_dims: Sequence[int] = (),
    ffn_ratios: Sequence[float] = (),
    sequence_length: int,
    outer_dim: int = 0,
) -> SearchSpace:
    """Return a space of BERT encoders.

    A single option of ``heads``, ``ffn_dims`` or ``ffn_ratios`` becomes a fixed gene, several a choice for the network.

    Args:
        hidden_dims: widths; with ``outer_dim`` of each layer (one list, or a list for each), otherwise of the network.
        ffn_dims: hidden units of feed-forward layers.
        ffn_ratios: the same in units of the layer's width, rounded down, in place of ``ffn_dims``.
    """
    fixed: dict[str, Option] = {"sequence_length": sequence_length, **({OUTER: outer_dim} if outer_dim else {})}
    per = ("layers", max(layers)) if outer_dim else ()
    choices = [Choice.make("layers", layers), Choice.make("hidden_dim", hidden_dims, *per)]
    for gene, options in (("ffn_dim", ffn_dims), (RATIO, ffn_ratios), ("heads", heads)):
        if len(options) == 1:
            fixed[gene] = options[0]
        elif options:
            choices.append(Choice.make(gene, options))
    return SearchSpace(name, choices, fixed)


def encoder_layers(architecture: Architecture) -> tuple[TransformerLayer, ...]:
    """Return the layers of a masked language model, by these genes or by those of :mod:`nas_core.space.masked_lm`."""
    if "hidden_dim" not in architecture:
        return transformer_layers(architecture)
    widths = layer_widths(architecture)
    gene = "ffn_dim" if "ffn_dim" in architecture else RATIO
    sizes = zip(per_layer(architecture, gene, len(widths)), widths, strict=True)
    ffn = [ffn_width(size, width) if gene == RATIO else int(size) for size, width in sizes]
    layers = transformer_layers(architecture, ffn, widths)
    for layer in layers:
        if layer.heads < 1 or layer.qkv_dim % layer.heads:
            raise ArchitectureError(
                f"a layer is {layer.qkv_dim} wide, which its {layer.heads} heads cannot share; take a multiple of them"
            )
    return layers


def ffn_width(ratio: float, width: int) -> int:
    """Return the hidden units of a feed-forward layer, rounded down."""
    return int(float(ratio) * width)


def layer_widths(architecture: Architecture) -> tuple[int, ...]:
    """Return the width C of each layer."""
    depth = architecture.number("layers")
    if "hidden_dim" not in architecture:
        return (architecture.number("embed_dim"),) * depth
    return tuple(int(width) for width in per_layer(architecture, "hidden_dim", depth))


def network_width(architecture: Architecture) -> int:
    """Return the width C of the embedding and of the features."""
    if "hidden_dim" not in architecture:
        return architecture.number("embed_dim")
    return architecture.number(OUTER if OUTER in architecture else "hidden_dim")


def joint_sizes(architecture: Architecture) -> tuple[tuple[int, int], ...]:
    """Return input and output widths of a static network's linear maps before, between and after its layers.

    There are none if all layers have one width.
    """
    if OUTER not in architecture:
        return ()
    widths, outer = layer_widths(architecture), network_width(architecture)
    return tuple(zip((outer, *widths), (*widths, outer), strict=True))


@register_space
def supershaper_bert() -> SearchSpace:
    """SuperShaper's space (Mixture-of-Supernets, section 4.2): BERT base with a width for each of its 12 layers."""
    return bert_space(
        "supershaper_bert",
        layers=(12,),
        hidden_dims=(120, 240, 360, 480, 540, 600, 768),
        heads=(12,),
        ffn_dims=(3072,),
        sequence_length=128,
        outer_dim=768,
    )


@register_space
def bert_base() -> SearchSpace:
    """BERT encoders of 12 equal layers (Mixture-of-Supernets, section 4.3): 550 architectures."""
    return bert_space(
        "bert_base",
        layers=(12,),
        hidden_dims=tuple(range(768, 119, -12)),
        heads=(12, 6),
        ffn_ratios=(4.0, 3.5, 3.0, 2.5, 2.0),
        sequence_length=128,
    )


@register_space
def supershaper_bert_small() -> SearchSpace:
    """SuperShaper's shape for two processor cores: 4 layers of at most 128 channels."""
    return bert_space(
        "supershaper_bert_small",
        layers=(4,),
        hidden_dims=(128, 96, 64, 32),
        heads=(4,),
        ffn_dims=(512,),
        sequence_length=128,
        outer_dim=128,
    )


@register_space
def bert_small() -> SearchSpace:
    """Four equal layers of 48 to 128 channels, for two processor cores."""
    return bert_space(
        "bert_small",
        layers=(4,),
        hidden_dims=tuple(range(128, 47, -16)),
        heads=(4, 2),
        ffn_ratios=(4.0, 3.0, 2.0),
        sequence_length=128,
    )
