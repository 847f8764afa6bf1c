"""The network of NAS-Bench-201: its parameters are those of the published table."""

from __future__ import annotations

import torch

from nas_core.models.nasbench201 import nasbench201_network

SKIP, CONV1, CONV3, POOL = 1, 2, 3, 4


def parameters(*operations: int) -> int:
    return sum(each.numel() for each in nasbench201_network(operations).parameters())


def test_parameters_are_the_published_ones() -> None:
    outside = 73_306  # of the cell without any convolution
    assert parameters(POOL, SKIP, SKIP, POOL, SKIP, SKIP) == parameters(0, 0, 0, 0, 0, 0) == outside
    assert parameters(SKIP, 0, 0, CONV1, 0, 0) == 101_306
    assert parameters(POOL, SKIP, 0, POOL, CONV3, SKIP) == 316_346
    assert parameters(CONV3, CONV1, CONV3, SKIP, CONV3, CONV3) == 1_073_466


def test_states_are_sums_of_what_operations_make_of_those_before() -> None:
    images = torch.randn(2, 3, 8, 8)
    cell = nasbench201_network([SKIP, SKIP, SKIP, POOL, SKIP, CONV1], channels=4, cells=1).layers[0]
    x = torch.randn(2, 4, 8, 8)
    first = x
    second = x + first
    expected = cell.edges["0_3"](x) + first + cell.edges["2_3"](second)
    assert torch.allclose(cell(x), expected)
    assert nasbench201_network([0] * 6, channels=4, cells=1).layers[0](x).eq(0).all()
    assert nasbench201_network([CONV3] * 6, channels=4, cells=2, classes=7)(images).shape == (2, 7)
