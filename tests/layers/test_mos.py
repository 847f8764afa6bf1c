"""Mixtures of experts: routers, mixing, experts of low rank, initialisation, similarity, and settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.layers import ROUTERS, ElasticLinear, MoSConfig, MoSLinear, Router
from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from nas_core.layers.mos import (
    SPREAD,
    check_diversity_weight,
    low_rank_experts,
    mix,
    mix_low_rank,
    naive_alike,
    naive_mix,
    rows_alike,
)
from tests.contracts.elastic import ElasticCase, ElasticContract
from tests.contracts.router import RouterContract


class TestLayerRouter(RouterContract):
    kind = "layer"


class TestNeuronRouter(RouterContract):
    kind = "neuron"


def router_of(kind: str, rows: int = 6, **settings: Any) -> Router:
    return ROUTERS.get(kind)(10, MoSConfig(kind=kind, **settings), rows)


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


# -- settings ----------------------------------------------------------------------------------------------------------


# -- low rank ---------------------------------------------------------------------------------------------------------

KINDS = ("layer", "neuron")
FEATURES = 10
ENCODING = torch.linspace(0.2, 1.0, FEATURES)


def parts(dtype: torch.dtype = torch.float) -> list[Tensor]:
    """The first of three experts (5, 7), and the factors of the others' differences, of rank 2."""
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=dtype) for shape in ((5, 7), (2, 5, 2), (2, 2, 7))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_mixture_equals_the_equations_of_full_experts(kind: str, columns: int, rows: int) -> None:
    mixing = coefficients(kind, 3, rows)
    ours = [tensor.clone().requires_grad_() for tensor in (*parts(), mixing)]
    theirs = [tensor.clone().requires_grad_() for tensor in (*parts(), mixing)]
    mixed = mix_low_rank(ours[0], ours[1], ours[2], ours[3], rows, columns)
    expected = naive_mix(low_rank_experts(*theirs[:3]), theirs[3], rows, columns)
    torch.testing.assert_close(mixed, expected, atol=1e-5, rtol=1e-5)
    weighting = torch.randn(rows, columns)
    for output in (mixed, expected):
        (output * weighting).sum().backward()
    for got, want in zip(ours[:3], theirs[:3], strict=True):
        torch.testing.assert_close(got.grad, want.grad, atol=1e-5, rtol=1e-5)
    # The first expert's coefficient is what the others leave of one: the softmax takes both gradients alike.
    through = [torch.stack([each.grad[..., i] - each.grad[..., 0] for i in (1, 2)]) for each in (ours[3], theirs[3])]  # type: ignore[index]
    torch.testing.assert_close(*through, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_feed_forward_layer_has_the_gradients_of_the_equations(kind: str) -> None:
    """Of all parameters, routers included, against autograd through full experts."""
    torch.manual_seed(0)
    layer = ElasticFeedForward(6, 9, FEATURES, MoSConfig(kind=kind, router_hidden=8, experts=3, rank=2, start="near"))
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
        x = x @ naive_mix(linear.experts(), mixing, rows, columns).t() + bias
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


# -- the layer ---------------------------------------------------------------------------------------------------------


# -- initialisation ----------------------------------------------------------------------------------------------------


def started(start: str, rank: int = 0, experts: int = 3) -> torch.Tensor:
    torch.manual_seed(2)
    layer = MoSLinear(40, 30, MoSConfig(kind="layer", experts=experts, start=start, rank=rank))
    assert not layer.bias.any()
    return layer.experts().detach()


@pytest.mark.parametrize("rank", [0, 4])
def test_equal_experts_are_copies_of_one(rank: int) -> None:
    experts = started("equal", rank)
    assert torch.equal(experts, experts[:1].expand_as(experts))
    assert float(experts[0].std()) == pytest.approx((2 / 70) ** 0.5, rel=0.1)


@pytest.mark.parametrize("rank", [0, 4])
def test_near_experts_differ_a_little(rank: int) -> None:
    """Full ones by differences from their mean, those of low rank from the first."""
    experts = started("near", rank)
    differences = experts[1:] - experts[0] if rank else (experts - experts.mean(0)) * 1.5**0.5
    assert float(differences.std() / experts[0].std()) == pytest.approx(SPREAD, rel=0.2)
    assert not torch.equal(experts[1], experts[2])


# -- similarity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experts", [2, 3, 5])
def test_equals_its_definition(experts: int) -> None:
    torch.manual_seed(0)
    ours = torch.randn(experts, 6, 9).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    got, expected = rows_alike(ours), naive_alike(theirs)
    torch.testing.assert_close(got, expected)
    got.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-5)
    assert ours.grad is not None and ours.grad.any()


def test_from_orthogonal_to_equal() -> None:
    identity = torch.eye(4)
    assert float(rows_alike(torch.stack([identity, identity.flip(0)]))) == 0
    assert float(rows_alike(torch.stack([identity, identity * -3]))) == pytest.approx(1)
    zero = torch.stack([identity, torch.zeros(4, 4)]).requires_grad_()
    alike = rows_alike(zero)
    alike.backward()
    assert float(alike.detach()) == 0 and zero.grad is not None and zero.grad.isfinite().all()


# -- settings ----------------------------------------------------------------------------------------------------------

PLAIN = nn.Sequential(ElasticLinear(3, 3), MoSLinear(3, 3, MoSConfig(kind="layer", experts=1)))
WRONG = [
    (lambda: MoSConfig(kind="neurons"), UnknownChoiceError, "neurons"),
    (lambda: MoSConfig(kind="layer", start="random"), UnknownChoiceError, "random"),
    (lambda: MoSConfig(kind="layer", experts=0), ConfigError, "experts 0"),
    (lambda: MoSConfig(kind="layer", router_layers=0), ConfigError, "layers 0"),
    (lambda: MoSConfig(kind="layer", router_dropout=1.0), ConfigError, "1.0"),
    (lambda: MoSConfig(kind="layer", router_temperature=0.0), ConfigError, "0.0"),
    (lambda: MoSConfig(kind="layer", rank=-1), ConfigError, "-1"),
    (lambda: MoSConfig(kind="layer", rank=4, experts=1), ConfigError, "1 experts"),
    (lambda: MoSConfig(kind="neuron", share_router=True), ConfigError, "neuron"),
    (lambda: MoSLinear(7, 5, MoSConfig(kind="layer", rank=6)), ConfigError, "rank 6"),
    (lambda: check_diversity_weight(0.1, PLAIN), ConfigError, "several experts"),
    (lambda: check_diversity_weight(-1.0, PLAIN), ConfigError, "-1.0"),
    (lambda: check_diversity_weight(float("nan"), PLAIN), ConfigError, "nan"),
]


@pytest.mark.parametrize(("call", "error", "value"), WRONG)
def test_wrong_settings(call: Callable[[], object], error: type[Exception], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert "\n" not in str(caught.value) and value in str(caught.value)
