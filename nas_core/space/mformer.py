"""mFormer's search spaces for translation: HAT's genes, and softmax or linear attention in each layer.

Liu et al., "Neural Architecture Search on Efficient Transformers and Beyond", 2022, Table 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.errors import check_choice
from nas_core.space.architecture import Architecture
from nas_core.space.choice import Choice
from nas_core.space.hat import hat_small, translation_space
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace
from nas_core.space.stack import LINEAR_FIRST, attention_codes

_SEARCHED = ("softmax", "linear")
ATTENTION_GENES = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")
"""Genes of attention types. A space without such a gene uses softmax."""


def with_attention(
    space: SearchSpace,
    name: str,
    encoder: Sequence[str] = _SEARCHED,
    decoder: Sequence[str] = ("softmax",),
    cross: Sequence[str] = ("softmax",),
) -> SearchSpace:
    """Return a translation space with additional choices of attention in each layer.

    Args:
        encoder: names in ``nas_core.layers.attention.ATTENTION_KINDS`` for the encoder.
        decoder: names for the decoder.
        cross: names for cross-attention.
    """
    choices = list(space.choices)
    for gene, kinds in zip(ATTENTION_GENES, (encoder, decoder, cross), strict=True):
        depth = f"{gene.split('.')[0]}.layers"
        layers = max(int(option) for option in space.choice(depth).options[0])
        if tuple(kinds) != ("softmax",):
            choices.append(Choice.make(gene, kinds, depth, layers, attention_codes(kinds, LINEAR_FIRST)))
    return SearchSpace(name, choices, space.fixed)


def attention_of(architecture: Architecture, gene: str) -> tuple[str, ...]:
    """Return the attention type of each layer, by default softmax."""
    layers = architecture.number(f"{gene.split('.')[0]}.layers")
    if gene not in architecture:
        return ("softmax",) * layers
    kinds = architecture[gene]
    return tuple(map(str, kinds)) if isinstance(kinds, tuple) else (str(kinds),) * layers


def _wmt14() -> SearchSpace:
    return translation_space(
        "wmt14",
        embed_dims=(1024, 768),
        ffn_dims=(5120, 4096, 3072, 2048),
        heads=(16, 8, 4),
        encoder_layers=(6,),
        decoder_layers=(6, 5, 4, 3, 2, 1),
        qkv_dim=1024,
    )


@register_space
def mformer_wmt14_en_de() -> SearchSpace:
    """Return mFormer's search space for WMT'14 English to German: softmax or linear attention in the encoder."""
    return with_attention(_wmt14(), "mformer_wmt14_en_de")


@register_space
def mformer_wmt14_en_de_all() -> SearchSpace:
    """Return ``mformer_wmt14_en_de`` with a choice of attention in the decoder too."""
    return with_attention(_wmt14(), "mformer_wmt14_en_de_all", _SEARCHED, _SEARCHED, _SEARCHED)


@register_space
def cosformer_wmt14_en_de() -> SearchSpace:
    """Return the search space of cosFormer* (Liu et al. 2022): linear attention in all encoder layers."""
    return with_attention(_wmt14(), "cosformer_wmt14_en_de", ("linear",))


def published_translation(name: str) -> Architecture:
    """Return an architecture of Table 3 of the mFormer paper.

    Sizes of single layers are chosen to match the printed sums over layers.

    Args:
        name: ``mformer`` (both attention types in the encoder), ``cosformer`` (linear) or ``transformer`` (softmax).
    """
    check_choice("network of mFormer's Table 3", name, _FOUND)
    kinds, ffn, heads, decoder_ffn, decoder_heads, cross_heads = _FOUND[name]
    return Architecture(
        {
            "qkv_dim": 1024,
            "encoder.embed_dim": 1024,
            "encoder.layers": 6,
            "encoder.ffn_dim": ffn,
            "encoder.self_heads": heads,
            "encoder.self_attention": kinds,
            "decoder.embed_dim": 1024,
            "decoder.layers": len(decoder_ffn),
            "decoder.ffn_dim": decoder_ffn,
            "decoder.self_heads": decoder_heads,
            "decoder.cross_heads": cross_heads,
            "decoder.arbitrary_cross": [-1] * len(decoder_ffn),
        }
    )


_Layers = list[int]
_FOUND: dict[str, tuple[list[str], _Layers, _Layers, _Layers, _Layers, _Layers]] = {
    "mformer": (
        ["softmax", "linear", "softmax", "linear", "softmax", "softmax"],
        [3072] * 6,
        [16, 8, 8, 8, 8, 16],
        [4096, 3072],
        [16, 16],
        [4, 4],
    ),
    "cosformer": (
        ["linear"] * 6,
        [3072, 3072, 3072, 3072, 4096, 4096],
        [8] * 6,
        [4096, 4096],
        [16, 4],
        [8, 4],
    ),
    "transformer": (
        ["softmax"] * 6,
        [3072, 4096, 4096, 4096, 4096, 4096],
        [8] * 6,
        [4096, 4096, 3072],
        [16, 16, 8],
        [16, 16, 8],
    ),
}


@register_space
def mformer_translation_small() -> SearchSpace:
    """Return ``hat_small`` with a choice of softmax or linear attention for each attention."""
    return with_attention(hat_small(), "mformer_translation_small", _SEARCHED, _SEARCHED, _SEARCHED)
