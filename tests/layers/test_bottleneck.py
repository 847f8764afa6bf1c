"""Maps between layers of unequal width: one matrix computes what two maps do, outputs and gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from nas_core.layers.bottleneck import ElasticBottlenecks, Joints
from nas_core.layers.weights import named_tensors


def test_one_matrix_computes_what_two_maps_do() -> None:
    torch.manual_seed(0)
    elastic = ElasticBottlenecks(12, (12, 8, 10))
    for parameter in elastic.parameters():
        torch.nn.init.normal_(parameter)
    kept, widths = (0, 2), (6, 9)
    maps = elastic.select(kept, widths)
    x = torch.randn(3, 12)
    y, plain = x, x
    for affine in maps:
        y = F.linear(y, *affine)
    for at, width in zip(kept, widths, strict=True):
        plain = F.linear(plain, *elastic.enter[at].select(12, width))
        plain = F.linear(plain, *elastic.leave[at].select(width, 12))
    torch.testing.assert_close(y, plain, atol=1e-4, rtol=1e-4)
    y.square().sum().backward()
    gradients = [parameter.grad for parameter in elastic.parameters()]
    elastic.zero_grad()
    plain.square().sum().backward()
    for got, parameter in zip(gradients, elastic.parameters(), strict=True):
        assert (got is None) == (parameter.grad is None)
        if got is not None:
            torch.testing.assert_close(got, parameter.grad, atol=1e-2, rtol=1e-3)
    static = Joints([(12, 6), (6, 9), (9, 12)])
    assert {name: tuple(tensor.shape) for name, tensor in named_tensors(maps)} == {
        name: tuple(tensor.shape) for name, tensor in static.named_parameters()
    }
