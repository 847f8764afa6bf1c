"""A supernet with its experts taken out, and the memory that is counted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from nas_core.layers.mos import MoSConfig
from nas_core.studies.overhead import held_bytes, without_experts


def layer(kind: str) -> ElasticFeedForward:
    torch.manual_seed(0)
    return ElasticFeedForward(4, 6, 2, MoSConfig(kind=kind, experts=3, router_hidden=2))


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_without_experts_a_layer_is_its_first_expert(kind: str) -> None:
    full = layer(kind)
    network, encoding, x = nn.Sequential(full), torch.tensor([0.1, 0.9]), torch.randn(2, 4)
    mixed, count = feed_forward(x, full.select(4, 5, encoding)), sum(one.numel() for one in network.parameters())
    with without_experts(network) as aside:
        assert aside == 4 * count  # they stay on their device, but are no part of the plain supernet's memory
        plain = full.select(4, 5, None)
        assert torch.equal(plain.fc1.weight, full.fc1.weight[:5]) and full.fc1.weight.shape == (6, 4)
        assert sum(one.numel() for one in network.parameters()) == 6 * 4 + 6 + 4 * 6 + 4
        assert not torch.equal(feed_forward(x, plain), mixed)
    assert torch.equal(feed_forward(x, full.select(4, 5, encoding)), mixed)
    assert sum(one.numel() for one in network.parameters()) == count


def test_what_a_forward_pass_keeps() -> None:
    linear, x = nn.Linear(3, 5, bias=False), torch.randn(7, 3)
    # The product keeps its input, exp keeps its output; the weights are no part of it.
    assert held_bytes(linear, lambda: linear(x).exp().sum()) == 4 * (7 * 3 + 7 * 5)
