"""The elastic feed-forward layer with each kind of mixture."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.layers import ElasticFeedForward, MoSConfig
from nas_core.layers.feed_forward import feed_forward
from tests.contracts.elastic import ElasticCase, ElasticContract, State, nested_prefix

FEATURES = 10
PLAIN = MoSConfig()
ENCODING = torch.linspace(0.2, 1.0, FEATURES)


def rename(state: State) -> State:
    return {name.replace("fc1", "0").replace("fc2", "2"): tensor for name, tensor in state.items()}


def case(mos: MoSConfig) -> ElasticCase:
    layer = ElasticFeedForward(6, 9, FEATURES, mos)
    return ElasticCase(
        layer=layer,
        sizes=((6, 9), (6, 4), (3, 9), (5, 2)),
        select=lambda c, f: layer.select(c, f, ENCODING),
        run=lambda layer, weights, x: feed_forward(x, weights),
        inputs=lambda c, f: (torch.linspace(-1, 2, 6 * c).view(2, 3, c).sin(),),
        static=lambda c, f: ElasticFeedForward(c, f, FEATURES, PLAIN),
        select_static=lambda static, c, f: static.select(c, f, None),
        plain=lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 6)),
        run_plain=lambda plain, x: plain(x),
        rename=rename,
        count=lambda c, f: c * f + f + f * c + c,
        placed=nested_prefix if mos.kind == "none" else None,
    )


class TestFeedForward(ElasticContract):
    def case(self) -> ElasticCase:
        return case(PLAIN)


class TestNeuronWise(ElasticContract):
    def case(self) -> ElasticCase:
        return case(MoSConfig(kind="neuron", router_hidden=8, experts=3))


@pytest.mark.parametrize(
    ("mos", "routers"),
    [
        (PLAIN, 0),
        (MoSConfig(kind="layer"), 1),
        (MoSConfig(kind="neuron"), 2),
    ],
)
def test_number_of_routers(mos: MoSConfig, routers: int) -> None:
    layer = ElasticFeedForward(6, 9, FEATURES, mos)
    assert len(layer.routers) == routers
    mixing = layer.routing(5, 4, ENCODING)
    assert len(mixing) == (2 if routers else 0)
    if mixing:
        assert (mixing[0] is mixing[1]) == (routers == 1)


def test_input_survives_without_gradients() -> None:
    layer = ElasticFeedForward(6, 9, FEATURES, PLAIN)
    x = torch.randn(3, 6)
    before = x.clone()
    expected = feed_forward(x, layer.select(6, 9, None)).detach()
    with torch.no_grad():
        torch.testing.assert_close(feed_forward(x, layer.select(6, 9, None)), expected)
    assert torch.equal(x, before)
