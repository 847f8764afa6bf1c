"""Mixtures of experts: routers, mixing, and settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.layers import ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from nas_core.layers.mos import ROUTERS, Router, mix
from tests.contracts.elastic import ElasticCase, ElasticContract, State
from tests.naive import naive_mix

FEATURES = 10
ENCODING = torch.linspace(0.2, 1.0, FEATURES)
ROWS = 40
"""Number of outputs of the largest layer."""


class RouterContract(ElasticContract):
    """The contract of elastic layers holds with the mixtures of a router."""

    kind: str

    def config(self, experts: int = 3) -> MoSConfig:
        return MoSConfig(kind=self.kind, router_hidden=8, experts=experts)

    def router(self, rows: int = ROWS, experts: int = 3) -> Router:
        torch.manual_seed(0)
        return ROUTERS[self.kind](FEATURES, self.config(experts), rows)

    def case(self) -> ElasticCase:
        layer = ElasticFeedForward(6, ROWS, FEATURES, self.config())
        return ElasticCase(
            layer=layer,
            sizes=((6, ROWS), (6, 4), (3, 33), (5, 2)),
            select=lambda c, f: layer.select(c, f, ENCODING),
            run=lambda layer, weights, x: feed_forward(x, weights),
            inputs=lambda c, f: (torch.linspace(-1, 2, 6 * c).view(2, 3, c).sin(),),
            static=lambda c, f: ElasticFeedForward(c, f, FEATURES, MoSConfig()),
            select_static=lambda static, c, f: static.select(c, f, None),
            plain=lambda: nn.Sequential(nn.Linear(6, ROWS), nn.ReLU(), nn.Linear(ROWS, 6)),
            run_plain=lambda plain, x: plain(x),
            rename=_renamed,
            count=lambda c, f: c * f + f + f * c + c,
            placed=None,
        )

    @pytest.mark.parametrize("rows", [1, 2, 17, ROWS])
    def test_coefficients_are_positive_and_sum_to_one(self, rows: int) -> None:
        mixing = self.router()(ENCODING, rows)
        assert mixing.shape in ((3,), (rows, 3))
        assert (mixing > 0).all()
        torch.testing.assert_close(mixing.sum(-1), torch.ones(mixing.shape[:-1]))

    def test_a_smaller_layer_has_the_first_coefficients_of_a_larger(self) -> None:
        router = self.router()
        full = router(ENCODING, ROWS)
        for rows in (1, 5, 20, 39):
            torch.testing.assert_close(router(ENCODING, rows), full if full.dim() == 1 else full[:rows])

    def test_architectures_are_told_apart_and_every_parameter_learns(self) -> None:
        router = self.router()
        first, other = router(ENCODING, ROWS), router(1 - ENCODING, ROWS)
        assert not torch.allclose(first, other)
        first[..., 0].sum().backward()
        for name, parameter in router.named_parameters():
            assert parameter.grad is not None and parameter.grad.any(), name


def _renamed(state: State) -> State:
    return {name.replace("fc1", "0").replace("fc2", "2"): tensor for name, tensor in state.items()}


class TestLayerRouter(RouterContract):
    kind = "layer"


class TestNeuronRouter(RouterContract):
    kind = "neuron"


def router_of(kind: str, rows: int = 6, **settings: Any) -> Router:
    return ROUTERS[kind](10, MoSConfig(kind=kind, **settings), rows)


SIZES = [(7, 5), (7, 3), (4, 5), (3, 2)]


def coefficients(kind: str, experts: int, rows: int, dtype: torch.dtype = torch.float) -> Tensor:
    generator = torch.Generator().manual_seed(experts + rows)
    shape = (experts,) if kind == "layer" else (rows, experts)
    return torch.randn(shape, generator=generator, dtype=dtype).softmax(-1)


def mos_case(kind: str, experts: int) -> ElasticCase:
    layer = MoSLinear(7, 5, MoSConfig(kind=kind, experts=experts))
    return ElasticCase(
        layer=layer,
        sizes=tuple(SIZES),
        select=lambda i, o: layer.select(i, o, coefficients(kind, experts, o)),
        run=lambda layer, weights, x: F.linear(x, *weights),
        inputs=lambda i, o: (torch.linspace(-1, 2, 3 * i).view(3, i),),
        static=ElasticLinear,
        select_static=lambda static, i, o: static.select(i, o),
        plain=lambda: nn.Linear(7, 5),
        run_plain=lambda plain, x: plain(x),
        count=lambda i, o: i * o + o,
        placed=None,
    )


class TestLayerWiseLinear(ElasticContract):
    def case(self) -> ElasticCase:
        return mos_case("layer", 2)


class TestNeuronWiseLinear(ElasticContract):
    def case(self) -> ElasticCase:
        return mos_case("neuron", 3)


# -- mixing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["layer", "neuron"])
@pytest.mark.parametrize("experts", [1, 2, 5])
@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_mixture_equals_the_equations(kind: str, experts: int, columns: int, rows: int) -> None:
    torch.manual_seed(0)
    weights = torch.randn(experts, 5, 7)
    mixing = coefficients(kind, experts, rows)
    ours = [tensor.clone().requires_grad_() for tensor in (weights, mixing)]
    theirs = [tensor.clone().requires_grad_() for tensor in (weights, mixing)]
    mixed, expected = mix(*ours, rows, columns), naive_mix(*theirs, rows, columns)
    assert mixed.shape == (rows, columns)
    torch.testing.assert_close(mixed, expected, atol=1e-6, rtol=1e-6)
    weighting = torch.randn(rows, columns)
    (mixed * weighting).sum().backward()
    (expected * weighting).sum().backward()
    for name, got, want in zip(("experts", "coefficients"), ours, theirs, strict=True):
        torch.testing.assert_close(got.grad, want.grad, atol=1e-5, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


# -- the layer ---------------------------------------------------------------------------------------------------------

KINDS = ("layer", "neuron")


@pytest.mark.parametrize("kind", KINDS)
def test_a_feed_forward_layer_has_the_gradients_of_the_equations(kind: str) -> None:
    """Gradients of all parameters, routers included, equal those of autograd on the equations."""
    torch.manual_seed(0)
    layer = ElasticFeedForward(6, 9, FEATURES, MoSConfig(kind=kind, router_hidden=8, experts=3))
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(7, 5)
    feed_forward(x, layer.select(5, 4, ENCODING)).square().sum().backward()
    got = {name: parameter.grad for name, parameter in layer.named_parameters()}
    layer.zero_grad()
    sizes = ((5, 4), (4, 5))
    for linear, mixing, (columns, rows) in zip(
        (layer.fc1, layer.fc2), layer.routing(5, 4, ENCODING), sizes, strict=True
    ):
        assert isinstance(linear, MoSLinear)
        bias = naive_mix(linear.bias[:, :, None], mixing, rows, 1)[:, 0]
        x = x @ naive_mix(linear.weight, mixing, rows, columns).t() + bias
        x = x.relu() if linear is layer.fc1 else x
    x.square().sum().backward()
    for name, parameter in layer.named_parameters():
        torch.testing.assert_close(got[name], parameter.grad, atol=1e-3, rtol=1e-3, msg=lambda m, n=name: f"{n}: {m}")
        assert parameter.grad is not None and bool(parameter.grad.any()), name


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_the_temperature_divides_logits(kind: str) -> None:
    torch.manual_seed(0)
    router = router_of(kind)
    routing = router(torch.linspace(0.2, 1, 10), 6)
    router.temperature = 0.25
    torch.testing.assert_close(router(torch.linspace(0.2, 1, 10), 6), (routing.log() / 0.25).softmax(-1))


# -- settings ----------------------------------------------------------------------------------------------------------

WRONG = [
    (lambda: MoSConfig(kind="neurons"), UnknownChoiceError, "neurons"),
    (lambda: MoSConfig(kind="layer", experts=0), ConfigError, "experts 0"),
    (lambda: MoSConfig(kind="layer", router_layers=0), ConfigError, "layers 0"),
    (lambda: MoSConfig(kind="layer", router_temperature=0.0), ConfigError, "0.0"),
]


@pytest.mark.parametrize(("call", "error", "value"), WRONG)
def test_wrong_settings(call: Callable[[], object], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value) and value in str(caught.value)
