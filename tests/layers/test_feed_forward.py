"""The elastic feed-forward layer with each kind of mixture."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nas_core.errors import ConfigError
from nas_core.layers import ElasticFeedForward, MoSConfig, MoSLinear
from nas_core.layers.feed_forward import feed_forward
from nas_core.layers.mos import naive_mix
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
        (MoSConfig(kind="layer", share_router=False), 2),
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


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_gradients_of_experts_and_routers_equal_the_equations(kind: str) -> None:
    """Of all parameters, through the sliced mixture, against autograd through the plain reference."""
    torch.manual_seed(0)
    layer = ElasticFeedForward(6, 9, FEATURES, MoSConfig(kind=kind, router_hidden=8))
    assert isinstance(layer.fc1, MoSLinear)
    assert isinstance(layer.fc2, MoSLinear)
    nn.init.normal_(layer.fc1.bias)
    nn.init.normal_(layer.fc2.bias)
    x = torch.randn(7, 5)
    feed_forward(x, layer.select(5, 4, ENCODING)).square().sum().backward()
    got = {name: parameter.grad for name, parameter in layer.named_parameters()}
    layer.zero_grad()
    for linear, mixing, (columns, rows) in zip(
        (layer.fc1, layer.fc2), layer.routing(5, 4, ENCODING), ((5, 4), (4, 5)), strict=True
    ):
        bias = naive_mix(linear.bias[:, :, None], mixing, rows, 1)[:, 0]
        x = x @ naive_mix(linear.weight, mixing, rows, columns).t() + bias
        x = x.relu() if linear is layer.fc1 else x
    x.square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(
            got[name], parameter.grad, atol=1e-4, rtol=1e-4, msg=lambda m, n=name: f"gradient {n}: {m}"
        )
        assert bool(parameter.grad.any()), name


def test_dropout_is_on_hidden_units() -> None:
    torch.manual_seed(0)
    layer = ElasticFeedForward(6, 400, FEATURES, PLAIN)
    nn.init.ones_(layer.fc1.bias)
    nn.init.zeros_(layer.fc1.weight)
    nn.init.constant_(layer.fc2.weight, 1 / 400)
    output = feed_forward(torch.randn(50, 6), layer.select(6, 400, None), dropout=0.5)
    kept = output.detach()[:, 0] * 400 / 2
    torch.testing.assert_close(kept, kept.round(), atol=1e-3, rtol=0)
    assert 190 < float(kept.mean()) < 210
    assert len(kept.round().unique()) > 5


def test_input_survives_without_gradients() -> None:
    layer = ElasticFeedForward(6, 9, FEATURES, PLAIN)
    x = torch.randn(3, 6)
    before = x.clone()
    expected = feed_forward(x, layer.select(6, 9, None)).detach()
    with torch.no_grad():
        torch.testing.assert_close(feed_forward(x, layer.select(6, 9, None)), expected)
    assert torch.equal(x, before)


@pytest.mark.parametrize(("sizes", "value"), [((7, 9), "embed_dim 7"), ((6, 0), "ffn_dim 0")])
def test_wrong_sizes(sizes: tuple[int, int], value: str) -> None:
    with pytest.raises(ConfigError, match=value):
        ElasticFeedForward(6, 9, FEATURES, PLAIN).select(*sizes)
