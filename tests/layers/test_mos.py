"""Linear layers of experts, mixed by given coefficients, and the settings of mixtures."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.layers import ROUTERS, ElasticLinear, MoSConfig, MoSLinear
from nas_core.layers.mos import mix, naive_mix
from tests.contracts.elastic import ElasticCase, ElasticContract

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


@pytest.mark.parametrize("kind", ["layer", "neuron"])
@pytest.mark.parametrize(("columns", "rows"), [(7, 5), (4, 3)])
def test_gradients_in_double_precision(kind: str, columns: int, rows: int) -> None:
    torch.manual_seed(0)
    weights = torch.randn(3, 5, 7, dtype=torch.double, requires_grad=True)
    mixing = coefficients(kind, 3, rows, torch.double).requires_grad_()
    assert torch.autograd.gradcheck(lambda w, c: mix(w, c, rows, columns), (weights, mixing))


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_half_precision(kind: str) -> None:
    torch.manual_seed(0)
    weights, mixing = torch.randn(2, 5, 7).bfloat16(), coefficients(kind, 2, 3).bfloat16()
    ours = [tensor.clone().requires_grad_() for tensor in (weights, mixing)]
    theirs = [tensor.float().requires_grad_() for tensor in (weights, mixing)]
    mixed, expected = mix(*ours, 3, 4), naive_mix(*theirs, 3, 4)
    assert mixed.dtype == torch.bfloat16
    mixed.float().square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(mixed.float(), expected, atol=3e-2, rtol=3e-2)
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got.grad.float(), want.grad, atol=0.15, rtol=3e-2)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_coefficients_may_be_finer_than_experts(kind: str) -> None:
    """Halves are mixed, and get their gradients, by the coefficients as halves hold them; the sums are kept exact."""
    torch.manual_seed(0)
    weights, mixing = torch.randn(3, 5, 7).bfloat16().requires_grad_(), coefficients(kind, 3, 4).requires_grad_()
    grad, rounded = torch.randn(4, 6).bfloat16(), mixing.detach().bfloat16()
    mixed = mix(weights, mixing, 4, 6)
    assert mixed.dtype == torch.bfloat16
    mixed.backward(grad)
    assert weights.grad is not None and mixing.grad is not None
    share = rounded[:, None, None] if kind == "layer" else rounded.t()[:, :, None]
    assert torch.equal(weights.grad[:, :4, :6], grad * share)
    assert not weights.grad[:, 4:].any() and not weights.grad[:, :, 6:].any()
    rows = torch.einsum("moi,oi->om", weights.detach()[:, :4, :6].float(), grad.float())
    assert mixing.grad.dtype == torch.float32
    torch.testing.assert_close(mixing.grad, rows.sum(0) if kind == "layer" else rows, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_the_bias_of_halves_is_mixed_in_float32(kind: str) -> None:
    torch.manual_seed(0)
    layer = MoSLinear(7, 5, MoSConfig(kind=kind, experts=3))
    nn.init.normal_(layer.bias)
    layer.bfloat16()
    mixing = coefficients(kind, 3, 4)
    exact = (mixing.expand(4, 3) * layer.bias.detach()[:, :4].float().t()).sum(1)
    bias = layer.select(6, 4, mixing).bias
    assert bias.dtype == torch.bfloat16
    assert torch.equal(bias, exact.bfloat16())


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_bias_is_mixed_by_the_coefficients_of_its_row(kind: str) -> None:
    torch.manual_seed(0)
    layer = MoSLinear(7, 5, MoSConfig(kind=kind, experts=3))
    nn.init.normal_(layer.bias)
    mixing = coefficients(kind, 3, 4).requires_grad_()
    bias = layer.select(6, 4, mixing).bias
    expected = torch.stack(
        [
            sum(
                float((mixing[e] if kind == "layer" else mixing[row, e]).detach()) * layer.bias.detach()[e, row]
                for e in range(3)
            )
            for row in range(4)
        ]
    )
    torch.testing.assert_close(bias, expected)
    bias.sum().backward()
    of_bias = layer.bias.grad
    assert of_bias is not None
    assert not of_bias[:, 4:].any()
    torch.testing.assert_close(of_bias[:, :4].t(), mixing.detach().expand(4, 3))


def test_one_expert_is_the_plain_layer_to_the_bit() -> None:
    torch.manual_seed(0)
    for kind in ("layer", "neuron"):
        config = MoSConfig(kind=kind, experts=1)
        layer, plain = MoSLinear(7, 5, config), ElasticLinear(7, 5)
        nn.init.normal_(layer.bias)
        plain.load_state_dict({"weight": layer.weight[0].detach(), "bias": layer.bias[0].detach()})
        router = ROUTERS.get(kind)(10, config, 5)
        mixed, selected = layer.select(6, 3, router(torch.rand(10), 3)), plain.select(6, 3)
        assert torch.equal(mixed.weight, selected.weight)
        assert torch.equal(mixed.bias, selected.bias)


@pytest.mark.parametrize("kind", ["layer", "neuron"])
def test_equal_experts_make_the_router_irrelevant(kind: str) -> None:
    torch.manual_seed(0)
    layer = MoSLinear(7, 5, MoSConfig(kind=kind, experts=3))
    with torch.no_grad():
        layer.weight.copy_(layer.weight[:1].expand_as(layer.weight))
        layer.bias.copy_(torch.randn(5).expand(3, 5))
    first = coefficients(kind, 3, 4)
    second = first.flip(-1)
    assert not torch.allclose(first, second)
    for one, other in zip(layer.select(6, 4, first), layer.select(6, 4, second), strict=True):
        torch.testing.assert_close(one, other)


def test_neuron_wise_with_equal_rows_is_layer_wise() -> None:
    torch.manual_seed(0)
    layer = MoSLinear(7, 5, MoSConfig(kind="neuron", experts=3))
    nn.init.normal_(layer.bias)
    one = coefficients("layer", 3, 4)
    for got, want in zip(layer.select(6, 4, one.expand(4, 3)), layer.select(6, 4, one), strict=True):
        torch.testing.assert_close(got, want)


def test_experts_start_independently() -> None:
    layer = MoSLinear(40, 30, MoSConfig(kind="layer", experts=3))
    assert layer.weight.shape == (3, 30, 40)
    assert not layer.bias.any()
    bound = (6 / 70) ** 0.5
    for index in range(3):
        assert 0.9 * bound < float(layer.weight[index].detach().abs().max()) <= bound
        assert not torch.allclose(layer.weight[index], layer.weight[index - 1])


# -- settings ----------------------------------------------------------------------------------------------------------


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UnknownChoiceError, match="neuron"):
        MoSConfig(kind="neurons")
    with pytest.raises(ConfigError, match=r"router layers 3000; expected at most 65536, 65536 and 100$"):
        MoSConfig(kind="neuron", router_layers=3000)
    with pytest.raises(ConfigError, match=r"^experts 0, router hidden 128, router layers 2: each must be at least 1$"):
        MoSConfig(kind="layer", experts=0)
    for size in ("router_hidden", "router_layers"):
        with pytest.raises(ConfigError, match="at least 1"):
            MoSConfig(kind="layer", **{size: 0})  # type: ignore[arg-type]
    for share in (-0.1, 1.0, 1.5):
        with pytest.raises(ConfigError, match=rf"^router dropout {share}; expected a share from 0 to below 1$"):
            MoSConfig(kind="layer", router_dropout=share)
    for rank, experts in ((-1, 2), (4, 1)):
        with pytest.raises(ConfigError, match=rf"^rank {rank} of the differences of {experts} experts; expected 0 "):
            MoSConfig(kind="layer", rank=rank, experts=experts)
    with pytest.raises(ConfigError, match="cannot be shared"):
        MoSConfig(kind="neuron", share_router=True)


def test_the_smallest_settings_are_allowed() -> None:
    config = MoSConfig(kind="layer", experts=1, router_hidden=1, router_layers=1, router_dropout=0.0)
    assert MoSLinear(4, 3, config).weight.shape == (1, 3, 4)
    assert MoSConfig(kind="layer", experts=2, rank=1).rank == 1
    assert MoSConfig(experts=0).kind == "none"  # without mixtures nothing else is read


def test_layer_wise_shares_its_router_unless_told_otherwise() -> None:
    assert MoSConfig(kind="layer").shared
    assert not MoSConfig(kind="layer", share_router=False).shared
    assert not MoSConfig(kind="neuron").shared
