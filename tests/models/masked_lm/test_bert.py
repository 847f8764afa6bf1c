"""BERT encoders as a kind of network, against a plain reading, extracted, counted, and as large as the paper says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas_core.layers.bottleneck import ElasticBottlenecks
from nas_core.models.masked_lm import MaskedLMConfig, MaskedLMNet
from nas_core.models.masked_lm.costs import flops, parameters
from nas_core.models.masked_lm.net import Subnet
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.bert import bert_space
from tests.contracts.network_kind import NetworkKindContract
from tests.models.masked_lm.tiny import PAD, VOCAB, architectures, build, close, extract, sentences

SHAPED = bert_space(
    "shaped",
    layers=(3, 2),
    hidden_dims=((16, 12), (20, 8), (12, 4)),
    heads=(4, 2),
    ffn_dims=(24,),
    sequence_length=12,
    outer_dim=16,
)
EQUAL = bert_space(
    "equal", layers=(2,), hidden_dims=(16, 12, 8), heads=(4, 2), ffn_ratios=(2.5, 1.5), sequence_length=12
)
SPACES = {"shaped": SHAPED, "equal": EQUAL}
TABLE_9 = [
    (120, 2.0, 6, 5.14),
    (180, 3.5, 6, 9.92),
    (372, 2.5, 6, 26.68),
    (384, 3.0, 6, 29.82),
    (504, 3.5, 12, 49.50),
    (768, 4.0, 12, 109.48),
]
"""Hidden size, ratio and heads of the networks of 12 layers in Table 9, and their parameters in millions."""


class TestShaped(NetworkKindContract):
    name = "bert"
    settings = {"vocab": 30, "batch": 2}  # noqa: RUF012

    def space(self) -> SearchSpace:
        return SHAPED

    def counted(self, network: nn.Module) -> int:
        left_out = ("net.embedding.weight", "positions.table", "net.head.bias")
        return sum(p.numel() for name, p in network.named_parameters() if not name.endswith(left_out))


class TestEqual(TestShaped):
    def space(self) -> SearchSpace:
        return EQUAL


def of(net: MaskedLMNet, subnet: Subnet, architecture: Architecture, sentence: Tensor) -> Tensor:
    """Features (T, C) of one sentence without padding, through both maps of each layer of a supernet."""
    x = subnet.embedding[sentence] + net.positions.table[: len(sentence), : subnet.embedding.shape[1]]
    x = F.layer_norm(x, x.shape[-1:], *subnet.embedding_norm[:2])  # type: ignore[index]
    for index, layer in enumerate(subnet.layers):
        width = len(layer.ffn.fc2.bias)
        if isinstance(net.joints, ElasticBottlenecks):
            x = F.linear(x, net.joints.enter[index].weight[:width], net.joints.enter[index].bias[:width])
        q, k, v = F.linear(x, *layer.self_attn.in_proj).view(len(x), 3, layer.self_attn.heads, -1).permute(1, 2, 0, 3)
        read = ((q @ k.mT) * q.shape[-1] ** -0.5).softmax(-1) @ v
        x = F.layer_norm(x + F.linear(read.transpose(0, 1).flatten(1), *layer.self_attn.out_proj), (width,),
                         *layer.self_attn_norm[:2])  # fmt: skip
        hidden = F.gelu(F.linear(x, *layer.ffn.fc1))
        x = F.layer_norm(x + F.linear(hidden, *layer.ffn.fc2), (width,), *layer.ffn_norm[:2])
        if isinstance(net.joints, ElasticBottlenecks):
            x = F.linear(x, net.joints.leave[index].weight[:, :width], net.joints.leave[index].bias)
    return x


@pytest.mark.parametrize("name", SPACES)
@torch.no_grad()
def test_features_are_those_of_the_plain_reading(name: str) -> None:
    net, tokens = build(space=SPACES[name], mos="neuron"), sentences()
    for architecture in architectures(SPACES[name]).values():
        subnet = net.select(architecture)
        features = net.encode(subnet, tokens)
        for row, sentence in enumerate(tokens):
            close(features[row, sentence != PAD], of(net, subnet, architecture, sentence[sentence != PAD]), 1e-4)


def test_layers_in_another_order_keep_their_maps() -> None:
    sizes: dict[str, Any] = {"heads": (4,), "ffn_dims": (24,), "sequence_length": 12, "outer_dim": 16}
    space = bert_space("ordered", layers=(3, 2), hidden_dims=(16, 12), **sizes)
    net = build(space=space, layer_order=(1, 2, 0))
    genes = {**space.largest().to_dict(), "layers": 2, "hidden_dim": [12, 16]}
    first, *_, last = net.select(Architecture(genes)).joints
    assert isinstance(net.joints, ElasticBottlenecks)
    assert first.weight.equal(net.joints.enter[1].weight[:12]) and last.weight.equal(net.joints.leave[2].weight)
    static = extract(net, Architecture(genes))
    with torch.no_grad():
        subnets = net.select(Architecture(genes)), static.select(Architecture(genes))
        close(net(subnets[0], sentences()), static(subnets[1], sentences()))


@pytest.mark.parametrize("name", SPACES)
@torch.no_grad()
def test_flops_are_those_that_torch_counts(name: str) -> None:
    for architecture in architectures(SPACES[name]).values():
        net, tokens = extract(build(space=SPACES[name]), architecture), sentences()[3:4]
        subnet = net.select(architecture)
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            net(subnet, tokens)
        assert counter.get_total_flops() == flops(architecture, tokens.shape[1], VOCAB)


@pytest.mark.parametrize(("hidden", "ratio", "heads", "millions"), TABLE_9)
def test_parameters_are_those_of_table_9(hidden: int, ratio: float, heads: int, millions: float) -> None:
    """With the table of 30,522 tokens, 512 positions and the head that predicts tokens, but not its bias for each
    token; BERT's two vectors of segments, which change no digit, are none of this network's."""
    space, tokens = get_space("bert_base"), 30522
    genes = {"layers": 12, "hidden_dim": hidden, "ffn_ratio": ratio, "heads": heads}
    architecture = parameters(space.validate(Architecture(genes)), tokens, MaskedLMConfig(stored_positions=512))
    assert round((architecture - tokens) / 1e6, 2) == millions
