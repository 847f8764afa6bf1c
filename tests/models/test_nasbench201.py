"""The network of NAS-Bench-201: its parameters are those of the published table."""

from __future__ import annotations

import pytest
import torch

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.graph import GraphError
from nas_core.models.nasbench201 import NasBench201Net, nasbench201_network

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


def test_three_stages_halve_the_image_twice() -> None:
    network = nasbench201_network([SKIP] * 6, channels=4, cells=2)
    x, sizes = network.stem(torch.randn(1, 3, 16, 16)), []
    for layer in network.layers:
        x = layer(x)
        sizes.append(tuple(x.shape[1:]))
    assert sizes == [(4, 16, 16)] * 2 + [(8, 8, 8)] * 3 + [(16, 4, 4)] * 3


def test_a_seed_decides_the_weights_and_streams_stay() -> None:
    stream = torch.get_rng_state()
    first, same, other = (nasbench201_network([CONV3] * 6, channels=2, cells=1, seed=seed) for seed in (1, 1, 2))
    assert torch.get_rng_state().equal(stream) and isinstance(first, NasBench201Net)
    assert first.classifier.weight.equal(same.classifier.weight)
    assert not first.classifier.weight.equal(other.classifier.weight)


def test_wrong_cells() -> None:
    with pytest.raises(GraphError, match="six indices"):
        nasbench201_network([1, 2, 3])
    with pytest.raises(UnknownChoiceError, match="operation index"):
        nasbench201_network([9, 0, 0, 0, 0, 0])
    with pytest.raises(GraphError, match="got architecture"):
        nasbench201_network("conv")
    with pytest.raises(ConfigError, match="cells is 0"):
        nasbench201_network([1] * 6, cells=0)
