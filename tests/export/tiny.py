"""Tiny translation networks with every kind of attention, as exportable models."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nas_core.export.parts import Exportable
from nas_core.layers.attention import LinearAttention
from nas_core.models.translation import TranslationNet
from nas_core.models.translation.export import translation_info, translation_parts
from nas_core.space import Architecture, with_attention
from tests.models.translation.tiny import PAD, SOURCE_VOCAB, SPACE, VOCAB, build

EOS, LIMIT = 2, 12
BOTH = with_attention(SPACE, "tiny-both", *[("softmax", "linear")] * 3)
MODELS: dict[str, tuple[tuple[str, str, str], dict[str, Any]]] = {
    "softmax": (("softmax", "softmax", "softmax"), {"relative_length": 3}),
    "mixed": (("linear", "linear", "softmax"), {"norm_first": True, "linear": LinearAttention(16)}),
}
"""Attention in the encoder, in the decoder, across; settings of the network."""


def network(name: str) -> tuple[TranslationNet, Architecture]:
    """A supernet with random weights, in evaluation mode, and an architecture of unequal layers that read two layers of
    the encoder and one."""
    kinds, config = MODELS[name]
    settings = {"linear": LinearAttention(16), **config}
    net = build("layer" if name == "softmax" else "none", "separate", BOTH, **settings)
    layers = 2 if name == "softmax" else 1  # tracing more takes seconds
    genes: dict[str, Any] = {
        "encoder.embed_dim": 12,
        "encoder.layers": 2,
        "encoder.ffn_dim": [8, 24],
        "encoder.self_heads": [4, 2],
        "decoder.embed_dim": 16,
        "decoder.layers": layers,
        "decoder.ffn_dim": [16, 24][:layers],
        "decoder.self_heads": [2, 4][:layers],
        "decoder.cross_heads": [4, 2][:layers],
        "decoder.arbitrary_cross": [1, -1][:layers],
    }
    for gene, kind in zip(("encoder.self", "decoder.self", "decoder.cross"), kinds, strict=True):
        genes[f"{gene}_attention"] = [kind] * (2 if gene.startswith("encoder") else layers)
    with torch.no_grad():
        for parameter, weight in net.named_parameters():  # translations that differ
            if "kv_proj.weight" in parameter or parameter in ("source_embedding.weight", "output.weight"):
                weight.mul_(8)
    return net.eval(), BOTH.validate(Architecture(genes))


def exportable(name: str) -> tuple[Exportable, TranslationNet, Architecture]:
    """With words ``s0`` to ``s18`` and ``t0`` to ``t14``."""
    net, architecture = network(name)
    parts = translation_parts(net, architecture, LIMIT, LIMIT)
    texts = {
        f"dict.{side}.txt": "".join(f"{side[0]}{number} 1\n" for number in range(size - 4))
        for side, size in (("source", SOURCE_VOCAB), ("target", VOCAB))
    }
    info = {
        **translation_info(*parts),
        "tokens": {"bos": 0, "pad": PAD, "eos": EOS, "unk": 3},
        "dictionaries": {side: f"dict.{side}.txt" for side in ("source", "target")},
        "dictionary_first_index": 4,
    }
    return Exportable(parts, info, texts), net, architecture


def sources(*lengths: int) -> list[list[int]]:
    """Random sentences with an end."""
    stream = torch.Generator().manual_seed(4)
    return [[*torch.randint(4, SOURCE_VOCAB, (n,), generator=stream).tolist(), EOS] for n in lengths]


@torch.no_grad()
def greedy(net: TranslationNet, architecture: Architecture, sentence: list[int], longest: int) -> list[int]:
    """By the supernet itself."""
    subnet = net.select(architecture)
    cache = net.start(subnet, net.encode(subnet, torch.tensor([sentence])))
    token, result = torch.tensor([EOS]), []
    for position in range(longest):
        scores: Tensor = net.step(subnet, token, cache)
        scores[:, [PAD, EOS] if not position else [PAD]] = -torch.inf
        token = scores.argmax(1)
        if int(token) == EOS:
            break
        result.append(int(token))
    return result
