"""Search spaces of BERT encoders, as in Mixture-of-Supernets (section 4).

Genes of the network: ``layers``, ``sequence_length`` (tokens, for costs) and ``outer_dim`` (width of the embedding if
layers differ in width; Ganesan et al. 2021, "SuperShaper"). Genes of network or layer: ``hidden_dim``, ``heads``, and
``ffn_dim`` or ``ffn_ratio`` (FFN width divided by ``hidden_dim``).
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
    """Create a search space of BERT encoders.

    Args:
        hidden_dims: widths of the network. With ``outer_dim``, widths of each layer, as one list or one list per layer.
        ffn_ratios: FFN widths divided by the layer's width, instead of ``ffn_dims``. The product is rounded down.
        outer_dim: width of the embedding if layers differ in width (SuperShaper). 0 means one width for the network.
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
                f"layer width {layer.qkv_dim} is not divisible by {layer.heads} heads; change one of them"
            )
    return layers


def ffn_width(ratio: float, width: int) -> int:
    return int(float(ratio) * width)


def layer_widths(architecture: Architecture) -> tuple[int, ...]:
    depth = architecture.number("layers")
    if "hidden_dim" not in architecture:
        return (architecture.number("embed_dim"),) * depth
    return tuple(int(width) for width in per_layer(architecture, "hidden_dim", depth))


def network_width(architecture: Architecture) -> int:
    """Return the width C of the embedding and of the encoder's output."""
    if "hidden_dim" not in architecture:
        return architecture.number("embed_dim")
    return architecture.number(OUTER if OUTER in architecture else "hidden_dim")


def joint_sizes(architecture: Architecture) -> tuple[tuple[int, int], ...]:
    """Return (input, output) widths of the linear maps before, between and after the layers of a static network.

    Empty if all layers have the same width.
    """
    if OUTER not in architecture:
        return ()
    widths, outer = layer_widths(architecture), network_width(architecture)
    return tuple(zip((outer, *widths), (*widths, outer), strict=True))


@register_space
def supershaper_bert() -> SearchSpace:
    """Return SuperShaper's search space (Mixture-of-Supernets, section 4.2): 12 BERT layers that differ in width."""
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
    """Return a search space of 12 equal BERT layers (Mixture-of-Supernets, section 4.3): 550 architectures."""
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
    """Return a small SuperShaper space: 4 layers, each 32 to 128 wide."""
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
    """Return a small BERT space: 4 equal layers, 48 to 128 wide."""
    return bert_space(
        "bert_small",
        layers=(4,),
        hidden_dims=tuple(range(128, 47, -16)),
        heads=(4, 2),
        ffn_ratios=(4.0, 3.0, 2.0),
        sequence_length=128,
    )
