"""Encoder and decoder layers against torch's, and one position at a time against all at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from nas_core.layers import MoSConfig
from nas_core.layers.attention.kinds import KeysValues
from nas_core.layers.attention.projections import cross_keys_values
from nas_core.layers.transformer import (
    DecoderLayerWeights,
    Dropouts,
    ElasticDecoderLayer,
    ElasticEncoderLayer,
    LayerForm,
)
from tests.contracts.elastic import ElasticCase, ElasticContract, State, multihead_names, nested_prefix, waves

C, F, FEATURES = 12, 20, 10
PLAIN = MoSConfig()
ENCODING = torch.linspace(0.2, 1.0, FEATURES)


def rename(state: State) -> State:
    """The names of ``nn.TransformerEncoderLayer`` and ``nn.TransformerDecoderLayer``."""
    renamed: dict[str, Tensor] = {}
    for ours, theirs in (("self_attn", "self_attn"), ("cross_attn", "multihead_attn")):
        part = {n.removeprefix(f"{ours}."): t for n, t in state.items() if n.startswith(f"{ours}.")}
        if part:
            renamed.update({f"{theirs}.{name}": tensor for name, tensor in multihead_names(part).items()})
    last = "norm3" if "cross_attn_norm.weight" in state else "norm2"
    names = {
        "self_attn_norm": "norm1",
        "cross_attn_norm": "norm2",
        "ffn_norm": last,
        "ffn.fc1": "linear1",
        "ffn.fc2": "linear2",
    }
    for name, tensor in state.items():
        module, _, kind = name.rpartition(".")
        if module in names:
            renamed[f"{names[module]}.{kind}"] = tensor
    return renamed


def encoder_case(mos: MoSConfig, first: bool) -> ElasticCase:
    layer = ElasticEncoderLayer(C, F, C, FEATURES, mos, LayerForm(first))
    return ElasticCase(
        layer=layer,
        sizes=((C, F, 3), (C, 9, 1), (7, F, 2), (5, 3, 4)),
        select=lambda c, f, h: layer.select(c, f, h, ENCODING),
        run=lambda layer, weights, x: layer(x, weights, None, Dropouts()),
        inputs=lambda c, f, h: (waves(2, 5, c),),
        static=lambda c, f, h: ElasticEncoderLayer(c, f, C, FEATURES, PLAIN, LayerForm(first)),
        select_static=lambda static, c, f, h: static.select(c, f, h, None),
        plain=lambda: nn.TransformerEncoderLayer(C, 3, F, 0.0, batch_first=True, norm_first=first),
        run_plain=lambda plain, x: plain(x),
        rename=rename,
        count=lambda c, f, h: 4 * C * c + 3 * C + c + 2 * c * f + f + c + 4 * c,
        placed=nested_prefix if mos.kind == "none" else None,
    )


def decoder_case(mos: MoSConfig, first: bool) -> ElasticCase:
    layer = ElasticDecoderLayer(C, C, F, C, FEATURES, mos, LayerForm(first))

    def run(layer: ElasticDecoderLayer, weights: DecoderLayerWeights, x: Tensor, memory: Tensor) -> Tensor:
        output: Tensor = layer(x, weights, cross_keys_values(memory, weights.cross_attn), None, Dropouts())
        return output

    causal = nn.Transformer.generate_square_subsequent_mask(5)
    return ElasticCase(
        layer=layer,
        sizes=((C, C, F, 3, 3), (C, C, 9, 1, 6), (7, C, F, 2, 4), (C, 5, F, 4, 1), (3, 4, 2, 1, 2)),
        select=lambda c, m, f, h, x: layer.select(c, m, f, h, x, ENCODING),
        run=run,
        inputs=lambda c, m, *_: (waves(2, 5, c), waves(2, 7, m).flip(1)),
        static=lambda c, m, f, *_: ElasticDecoderLayer(c, m, f, C, FEATURES, PLAIN, LayerForm(first)),
        select_static=lambda static, *size: static.select(*size, None),
        plain=lambda: nn.TransformerDecoderLayer(C, 3, F, 0.0, batch_first=True, norm_first=first),
        run_plain=lambda plain, x, memory: plain(x, memory, causal, tgt_is_causal=True),
        rename=rename,
        count=lambda c, m, f, *_: (
            (4 * C * c + 3 * C + c) + (2 * C * c + 2 * C * m + 3 * C + c) + 2 * c * f + f + c + 6 * c
        ),
        placed=nested_prefix if mos.kind == "none" else None,
    )


class TestEncoderLayer(ElasticContract):
    def case(self) -> ElasticCase:
        return encoder_case(PLAIN, False)


class TestEncoderLayerNeuronWise(ElasticContract):
    def case(self) -> ElasticCase:
        return encoder_case(MoSConfig(kind="neuron", router_hidden=8), False)


class TestDecoderLayer(ElasticContract):
    def case(self) -> ElasticCase:
        return decoder_case(PLAIN, False)


class TestDecoderLayerNormFirst(ElasticContract):
    def case(self) -> ElasticCase:
        return decoder_case(PLAIN, True)


@pytest.mark.parametrize("first", [False, True])
def test_one_position_at_a_time_equals_all_at_once(first: bool) -> None:
    torch.manual_seed(0)
    layer = ElasticDecoderLayer(C, 9, F, C, FEATURES, PLAIN, LayerForm(first))
    weights = layer.select(7, 9, 11, 3, 2, None)
    x, memory = torch.randn(3, 6, 7), cross_keys_values(torch.randn(3, 5, 9), weights.cross_attn)
    mask = torch.rand(3, 1, 1, 5) > 0.3
    mask[..., 0] = True
    expected = layer(x, weights, memory, mask, Dropouts())
    past, outputs = None, []
    for position in range(6):
        output, past = layer.step(x[:, position : position + 1], weights, past, KeysValues(*memory), mask)
        outputs.append(output)
        assert past[0].shape == past[1].shape == (3, 3, position + 1, 4)
    torch.testing.assert_close(torch.cat(outputs, 1), expected, atol=1e-5, rtol=1e-5)
