"""Experts and their routers in halves and under autocast: gradients of coefficients that no half can hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.layers import MoSConfig
from nas_core.layers.feed_forward import ElasticFeedForward, feed_forward
from nas_core.layers.mos import mix
from nas_core.precision import computing_in, half_type
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads

FEATURES, WIDTH, HIDDEN = 5, 48, 96
ENCODING = torch.linspace(0, 1, FEATURES)
KINDS = ("layer", "neuron")


def layer(kind: str) -> ElasticFeedForward:
    torch.manual_seed(3)
    config = ElasticFeedForward(WIDTH, HIDDEN, FEATURES, MoSConfig(kind=kind, router_hidden=16))
    for parameter in config.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    with torch.no_grad():  # no hidden unit so near to 0 that a half has it on the other side
        config.fc1.bias[:, ::2] += 6
        config.fc1.bias[:, 1::2] -= 6
    return config


def trained(module: ElasticFeedForward, x: Tensor) -> dict[str, Tensor]:
    """Outputs of a smaller subnet, and the gradients of a loss that is scaled as against underflow."""
    weights = module.select(32, 80, ENCODING.to(x.device, non_blocking=True))
    y = feed_forward(x.to(weights.fc1.weight.dtype), weights)
    (y.float().square().mean() * 256).backward()
    return {"output": y.detach()} | {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def inputs() -> Tensor:
    return torch.randn(40, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_near_the_float32_reference(precision: str, kind: str, how: str, device: str) -> None:
    expected = trained(layer(kind), inputs())
    net, half = layer(kind).to(device), half_type(precision)
    if how == "cast" and half is not None:
        net = net.to(half)
    autocast = precision if how == "amp" or half is None else "fp32"
    on_device = inputs().to(device)
    with computing_in(autocast, device), no_host_reads(device, copies=True):
        got = trained(net, on_device)
    assert expected.keys() == got.keys() == {"output", *dict(net.named_parameters())}
    for name, value in got.items():
        assert how == "amp" or half is None or value.dtype == half
        close_in(precision, value, expected[name], times=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_of_a_coefficient_beyond_float16(kind: str, device: str) -> None:
    """Sums of products that leave float16's range, 65,504: what was done before is infinite, this is right."""
    rows, columns = 64, 512
    generator = torch.Generator().manual_seed(0)
    experts = (torch.rand(2, rows, columns, generator=generator) + 0.5).half().to(device).requires_grad_()
    shape = (2,) if kind == "layer" else (rows, 2)
    coefficients = torch.full(shape, 0.5, device=device, requires_grad=True)
    arriving = (torch.rand(rows, columns, generator=generator) * 400 + 100).half().to(device)
    mix(experts, coefficients, rows, columns).backward(arriving)
    products = experts.detach().cpu().double() * arriving.cpu().double()
    expected = products.sum((1, 2)) if kind == "layer" else products.sum(2).t()
    assert coefficients.grad is not None and coefficients.grad.dtype == torch.float32
    close_in("fp32", coefficients.grad, expected, times=3)
    before = torch.stack([torch.linalg.vecdot(expert, arriving) for expert in experts.detach()], -1)
    assert (before if kind == "neuron" else before.sum(0)).isinf().any()
    narrow = coefficients.detach().half().requires_grad_()  # as a router in float16 gave them
    mix(experts.detach(), narrow, rows, columns).backward(arriving)
    assert narrow.grad is not None and narrow.grad.isinf().any()
