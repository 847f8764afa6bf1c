"""Experts that differ from the first one by a matrix of low rank."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError
from nas_core.layers import ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from nas_core.layers.mos import low_rank_experts, mix_low_rank
from nas_core.layers.mos import naive_mix
from tests.contracts.elastic import ElasticCase, ElasticContract

SIZES = [(7, 5), (7, 3), (4, 5), (3, 2)]
KINDS = ("layer", "neuron")
FEATURES = 10
ENCODING = torch.linspace(0.2, 1.0, FEATURES)


def coefficients(kind: str, experts: int, rows: int, dtype: torch.dtype = torch.float) -> Tensor:
    shape = (experts,) if kind == "layer" else (rows, experts)
    return torch.randn(shape, generator=torch.Generator().manual_seed(rows), dtype=dtype).softmax(-1)


def parts(dtype: torch.dtype = torch.float) -> list[Tensor]:
    """The first of three experts (5, 7), and the factors of the others' differences, of rank 2."""
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=dtype) for shape in ((5, 7), (2, 5, 2), (2, 2, 7))]


def low_rank_case(kind: str) -> ElasticCase:
    layer = MoSLinear(7, 5, MoSConfig(kind=kind, experts=3, rank=2))
    return ElasticCase(
        layer=layer,
        sizes=tuple(SIZES),
        select=lambda i, o: layer.select(i, o, coefficients(kind, 3, o)),
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
        return low_rank_case("layer")


class TestNeuronWiseLinear(ElasticContract):
    def case(self) -> ElasticCase:
        return low_rank_case("neuron")


# -- mixing ------------------------------------------------------------------------------------------------------------


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
    for each in (mixed, expected):
        (each * weighting).sum().backward()
    for got, want in zip(ours[:3], theirs[:3], strict=True):
        torch.testing.assert_close(got.grad, want.grad, atol=1e-5, rtol=1e-5)
    # The first expert's coefficient is what the others leave of one: the softmax takes both gradients alike.
    through = [torch.stack([each.grad[..., i] - each.grad[..., 0] for i in (1, 2)]) for each in (ours[3], theirs[3])]  # type: ignore[index]
    torch.testing.assert_close(*through, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_double_precision(kind: str) -> None:
    given = [tensor.requires_grad_() for tensor in (*parts(torch.double), coefficients(kind, 3, 3, torch.double))]
    assert torch.autograd.gradcheck(lambda *each: mix_low_rank(*each, 3, 4), given)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision(kind: str) -> None:
    """Coefficients and their gradients stay float32."""
    ours = [tensor.bfloat16().requires_grad_() for tensor in parts()]
    theirs = [tensor.detach().float().requires_grad_() for tensor in ours]
    mixing = [coefficients(kind, 3, 3).requires_grad_() for _ in range(2)]
    mixed = mix_low_rank(*ours, mixing[0], 3, 4)
    expected = mix_low_rank(*theirs, mixing[1], 3, 4)
    assert mixed.dtype == torch.bfloat16
    for each in (mixed, expected):
        each.float().square().sum().backward()
    torch.testing.assert_close(mixed.float(), expected, atol=5e-2, rtol=5e-2)
    for got, want in zip([*ours, mixing[0]], [*theirs, mixing[1]], strict=True):
        assert got.grad is not None and got.grad.dtype == got.dtype
        torch.testing.assert_close(got.grad.float(), want.grad, atol=0.4, rtol=5e-2)


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


# -- the layer ---------------------------------------------------------------------------------------------------------


def test_parameters_are_counted() -> None:
    """One full expert and its factors; biases are full."""
    layer = MoSLinear(40, 30, MoSConfig(kind="neuron", experts=4, rank=3))
    assert sum(each.numel() for each in layer.parameters()) == 40 * 30 + 3 * 3 * (40 + 30) + 4 * 30
    assert {name: tuple(each.shape) for name, each in layer.state_dict().items()} == {
        "weight": (1, 30, 40), "bias": (4, 30), "left": (3, 30, 3), "right": (3, 3, 40),
    }  # fmt: skip
    full = MoSLinear(40, 30, MoSConfig(kind="neuron", experts=4)).state_dict()
    assert {name: tuple(each.shape) for name, each in full.items()} == {"weight": (4, 30, 40), "bias": (4, 30)}


def test_experts_begin_equal_and_part_by_the_first_gradient() -> None:
    torch.manual_seed(0)
    layer = MoSLinear(7, 5, MoSConfig(kind="layer", experts=3, rank=2))
    assert torch.equal(layer.experts(), layer.weight.expand(3, -1, -1))
    layer.select(7, 5, coefficients("layer", 3, 5)).weight.sum().backward()
    assert layer.left.grad is not None and layer.left.grad.any()


def test_a_rank_that_is_not_low_is_refused() -> None:
    with pytest.raises(ConfigError, match="rank 6 in a layer of 7 inputs and 5 outputs; expected at most 5"):
        MoSLinear(7, 5, MoSConfig(kind="layer", rank=6))
    for wrong in ({"rank": -1}, {"rank": 2, "experts": 1}):
        with pytest.raises(ConfigError, match="with at least 2 experts"):
            MoSConfig(kind="layer", **wrong)
