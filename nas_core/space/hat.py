"""Search spaces and sampling of HAT.

Wang et al., "HAT: Hardware-Aware Transformers for Efficient NLP", ACL 2020. Queries, keys and values have constant
width ``qkv_dim``. With gene ``decoder.arbitrary_cross``, a decoder layer attends to the last encoder layer (-1), the
last two (1) or three (2).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from nas_core.space.architecture import Architecture
from nas_core.space.choice import Choice
from nas_core.space.registry import register_space
from nas_core.space.space import SearchSpace

READ_LAYERS = {-1: 1, 1: 2, 2: 3}
"""Number of encoder layers that a decoder layer attends to, by option."""


def qkv_dims(architecture: Architecture, gene: str) -> tuple[int, ...]:
    """Return the width of the queries of each layer, summed over heads: ``qkv_dim``, or heads times ``head_dim``.

    Args:
        gene: name of the gene of the numbers of heads.
    """
    heads = architecture.numbers(gene)
    if "head_dim" in architecture:
        return tuple(number * architecture.number("head_dim") for number in heads)
    return (architecture.number("qkv_dim"),) * len(heads)


def translation_space(
    name: str,
    *,
    embed_dims: Sequence[int],
    ffn_dims: Sequence[int],
    heads: Sequence[int],
    encoder_layers: Sequence[int],
    decoder_layers: Sequence[int],
    qkv_dim: int,
    hat_scales: bool = False,
) -> SearchSpace:
    """Create a search space for translation with HAT's genes.

    Args:
        hat_scales: divide encodings by the constants of HAT's latency tables instead of by the largest option.
    """
    scale = {"embed_dim": 640.0, "layers": 6.0, "ffn_dim": 2048.0, "heads": 6.0, "cross": 2.0} if hat_scales else {}
    encoder, decoder = max(encoder_layers), max(decoder_layers)

    def scalar(gene: str, options: Sequence[int]) -> Choice:
        return Choice.make(gene, options, scale=scale.get(gene.split(".")[1], 0.0))

    def layered(gene: str, options: Sequence[int], kind: str, codes: dict[Any, float] | None = None) -> Choice:
        side = gene.split(".")[0]
        depth = encoder if side == "encoder" else decoder
        return Choice.make(gene, options, f"{side}.layers", depth, codes, scale.get(kind, 0.0))

    choices = [
        scalar("encoder.embed_dim", embed_dims),
        scalar("encoder.layers", encoder_layers),
        layered("encoder.ffn_dim", ffn_dims, "ffn_dim"),
        layered("encoder.self_heads", heads, "heads"),
        scalar("decoder.embed_dim", embed_dims),
        scalar("decoder.layers", decoder_layers),
        layered("decoder.ffn_dim", ffn_dims, "ffn_dim"),
        layered("decoder.self_heads", heads, "heads"),
        layered("decoder.cross_heads", heads, "heads"),
        layered("decoder.arbitrary_cross", tuple(READ_LAYERS), "cross", {k: float(v) for k, v in READ_LAYERS.items()}),
    ]
    return SearchSpace(name, choices, {"qkv_dim": qkv_dim})


def _wmt(name: str) -> SearchSpace:
    return translation_space(
        name,
        embed_dims=(640, 512),
        ffn_dims=(3072, 2048, 1024),
        heads=(8, 4),
        encoder_layers=(6,),
        decoder_layers=(6, 5, 4, 3, 2, 1),
        qkv_dim=512,
        hat_scales=True,
    )


@register_space
def hat_wmt14_en_de() -> SearchSpace:
    """Return HAT's search space for WMT'14 English to German."""
    return _wmt("hat_wmt14_en_de")


@register_space
def hat_wmt14_en_fr() -> SearchSpace:
    """Return HAT's search space for WMT'14 English to French, equal to ``hat_wmt14_en_de``."""
    return _wmt("hat_wmt14_en_fr")


@register_space
def hat_wmt19_en_de() -> SearchSpace:
    """Return HAT's search space for WMT'19 English to German, equal to ``hat_wmt14_en_de``."""
    return _wmt("hat_wmt19_en_de")


@register_space
def hat_iwslt14_de_en() -> SearchSpace:
    """Return HAT's search space for IWSLT'14 German to English."""
    return translation_space(
        "hat_iwslt14_de_en",
        embed_dims=(640, 512),
        ffn_dims=(2048, 1024, 512),
        heads=(4, 2),
        encoder_layers=(6,),
        decoder_layers=(6, 5, 4, 3, 2, 1),
        qkv_dim=512,
        hat_scales=True,
    )


@register_space
def hat_small() -> SearchSpace:
    """Return a small HAT space: width up to 128, FFN width up to 512, 3 encoder and 1 to 3 decoder layers."""
    return translation_space(
        "hat_small",
        embed_dims=(128, 96),
        ffn_dims=(512, 384, 256),
        heads=(4, 2),
        encoder_layers=(3,),
        decoder_layers=(3, 2, 1),
        qkv_dim=128,
    )


def hat_draw(space: SearchSpace, update: int) -> Architecture:
    """Return the architecture that HAT's code samples at a training update."""
    stream = random.Random(update)

    def draw(gene: str, layer: int = 0) -> Any:
        return stream.choice(space.choice(gene).options[layer])

    genes: dict[str, Any] = dict(space.fixed)
    for gene in ("encoder.embed_dim", "decoder.embed_dim", "encoder.layers", "decoder.layers"):
        genes[gene] = draw(gene)
    per_layer = {
        "encoder": ("encoder.ffn_dim", "encoder.self_heads"),
        "decoder": ("decoder.ffn_dim", "decoder.self_heads", "decoder.cross_heads"),
    }
    for side, names in per_layer.items():
        rows = [[draw(name, layer) for name in names] for layer in range(genes[f"{side}.layers"])]
        for index, name in enumerate(names):
            genes[name] = [values[index] for values in rows]
    cross = "decoder.arbitrary_cross"
    cross_options = [draw(cross, layer) for layer in range(len(space.choice(cross).options))]
    genes[cross] = cross_options[: genes["decoder.layers"]]
    return Architecture(genes)


def hat_extremes(space: SearchSpace) -> tuple[Architecture, Architecture]:
    """Return the smallest and the largest architecture as in the code of HAT and Mixture-of-Supernets.

    In both, decoder layers attend to the last two encoder layers if this is an option.
    """
    return _attend_to_two(space, space.smallest()), _attend_to_two(space, space.largest())


def _attend_to_two(space: SearchSpace, architecture: Architecture) -> Architecture:
    genes = architecture.to_dict()
    for choice in space.choices:
        if choice.name == "decoder.arbitrary_cross":
            layers = zip(genes[choice.name], choice.options, strict=False)
            genes[choice.name] = [1 if 1 in options else option for option, options in layers]
    return Architecture(genes)
