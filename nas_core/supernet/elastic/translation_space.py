"""Search space around a trained translation network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nas_core.space import Choice, SearchSpace
from nas_core.space.mformer import with_attention
from nas_core.supernet.elastic.kinds import kinds_at
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, depths, rounding, size_options

# Option of decoder.arbitrary_cross for the last encoder layer, as in trained networks.
_LAST_LAYER = -1


class SideSizes(NamedTuple):
    """Sizes of a trained encoder or decoder with equal layers."""

    layers: int
    embed_dim: int
    ffn_dim: int
    heads: int


def auto_space(
    name: str, encoder: SideSizes, decoder: SideSizes, head_dim: int, attention: Sequence[str] = ("softmax",)
) -> SearchSpace:
    """Return a space of translation networks up to the size of a trained one, with a choice of each size.

    Args:
        attention: attention types that each layer may choose if possible, including softmax.
    """
    fixed = {"qkv_dim": max(encoder.heads, decoder.heads) * head_dim, "head_dim": head_dim}
    depth_options = {"encoder": depths(encoder.layers), "decoder": depths(decoder.layers, 1 / decoder.layers)}
    choices = []
    for side, sizes in (("encoder", encoder), ("decoder", decoder)):
        width = size_options(sizes.embed_dim, WIDTHS, rounding(sizes.embed_dim))
        choices += [Choice.make(f"{side}.embed_dim", width), Choice.make(f"{side}.layers", depth_options[side])]
        layered = {"ffn_dim": size_options(sizes.ffn_dim, FFN, rounding(sizes.ffn_dim))}
        heads = size_options(sizes.heads, HEADS)
        layered |= {"self_heads": heads} if side == "encoder" else {"self_heads": heads, "cross_heads": heads}
        choices += [Choice.make(f"{side}.{n}", o, f"{side}.layers", sizes.layers) for n, o in layered.items()]
    choices.append(Choice.make("decoder.arbitrary_cross", (_LAST_LAYER,), "decoder.layers", decoder.layers))
    kinds = kinds_at(attention, ("encoder", "decoder", "cross"))
    return with_attention(SearchSpace(name, choices, fixed), name, *kinds)


def trained_genes(encoder: SideSizes, decoder: SideSizes, head_dim: int) -> dict[str, Any]:
    genes: dict[str, Any] = {"qkv_dim": max(encoder.heads, decoder.heads) * head_dim, "head_dim": head_dim}
    for side, sizes in (("encoder", encoder), ("decoder", decoder)):
        genes |= {f"{side}.embed_dim": sizes.embed_dim, f"{side}.layers": sizes.layers}
        genes |= {f"{side}.ffn_dim": (sizes.ffn_dim,) * sizes.layers}
        genes |= {f"{side}.self_heads": (sizes.heads,) * sizes.layers}
    cross = {"decoder.cross_heads": decoder.heads, "decoder.arbitrary_cross": _LAST_LAYER}
    return genes | {gene: (value,) * decoder.layers for gene, value in cross.items()}
