"""Example of a gene: number of bits of the feed-forward weights of each encoder layer."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.models.translation import TranslationNet
from nas_core.models.translation.net import Subnet
from nas_core.space import Architecture, Choice, SearchSpace, translation_space

GENE = "encoder.ffn_bits"


def few_bits() -> SearchSpace:
    """Return a translation space with an additional gene."""
    plain = translation_space(
        "plain", embed_dims=(16, 8), ffn_dims=(32, 16), heads=(2, 1), encoder_layers=(2, 1), decoder_layers=(1,),
        qkv_dim=8,
    )  # fmt: skip
    bits = Choice.make(GENE, [8, 2], per="encoder.layers", layers=2)
    return SearchSpace("few_bits", [*plain.choices, bits], plain.fixed)


class FewBitsNet(TranslationNet):
    """Translation network whose encoder has feed-forward weights of few bits."""

    def select(self, architecture: Architecture) -> Subnet:
        subnet = super().select(architecture)
        layers = []
        for layer, bits in zip(subnet.encoder_layers, architecture.numbers(GENE), strict=True):
            fc1, fc2 = (linear._replace(weight=quantize(linear.weight, bits)) for linear in layer.ffn[:2])
            layers.append(layer._replace(ffn=layer.ffn._replace(fc1=fc1, fc2=fc2)))
        return subnet._replace(encoder_layers=tuple(layers))


def quantize(weight: Tensor, bits: int) -> Tensor:
    """Round weights to ``2**bits - 1`` values around 0, with a straight-through gradient."""
    with torch.no_grad():
        step = weight.abs().max().clamp(min=1e-9) / (2 ** (bits - 1) - 1)
        change = (weight / step).round() * step - weight
    return weight + change
