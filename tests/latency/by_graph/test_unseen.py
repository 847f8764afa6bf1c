"""Networks beyond the sizes of the training: descriptions, and the additional spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.latency.by_graph.unseen import extrapolation_std, ranges_of, sizes_out_of_range

BATCH, SIZE, LENGTH = 0.15, 0.15, 0.35
"""Relative spread for each factor e beyond."""
SOFTMAX, ATTENTION, MATMUL = (KIND_NAMES.index(name) for name in ("softmax", "attention", "matmul"))


def network(
    batch: float = 1, gflops: float = 1, params_m: float = 10, access_m: float = 20, **shapes: list[int]
) -> Graph:
    """A matrix product behind operators of those kinds and output shapes."""
    kinds = [*(KIND_NAMES.index(name) for name in shapes), MATMUL]
    return Graph(
        kinds,
        [],
        attributes=np.zeros((len(kinds), 8)),
        shapes=[*shapes.values(), [1, 9999, 9999, 0]],
        costs=np.zeros((len(kinds), 3)),
        static=(batch, gflops, params_m / 10, access_m / 10),
    )


def spreads(*networks: Graph) -> list[float]:
    trained = ranges_of(Graphs.of([network(softmax=[1, 4, 20, 20]), network(gflops=2, softmax=[1, 4, 100, 100])]))
    assert trained["attended positions"] == [20.0, 100.0] and trained["GFLOPs"] == [1.0, 2.0]
    return [float(x) for x in extrapolation_std(Graphs.of(networks), trained)]


def test_no_spread_inside_the_training() -> None:
    inside = [network(), network(gflops=3.9), network(params_m=5.1), network(softmax=[1, 2, 7, 100])]
    assert spreads(*inside) == [0.0] * 4


def test_the_spread_grows_with_the_logarithm_of_the_factor_beyond() -> None:
    four, sixteen = spreads(network(batch=4), network(batch=16))
    assert (four, sixteen) == pytest.approx((BATCH * math.log(4), BATCH * math.log(16)))
    larger, smaller = spreads(network(gflops=40), network(access_m=1))
    assert larger == pytest.approx(SIZE * math.log(10)), "from twice the most of the training's on"
    assert smaller == pytest.approx(SIZE * math.log(10))
    (both,) = spreads(network(batch=4, gflops=40))
    assert both == pytest.approx(math.hypot(four, larger))
    assert spreads(network(gflops=1e-9, params_m=0)) == [pytest.approx(math.hypot(SIZE, SIZE) * math.log(1000))]


def test_lengths_that_attention_attends_to() -> None:
    expected = pytest.approx(LENGTH * math.log(4))
    values = spreads(
        network(softmax=[1, 4, 1, 400]),  # a decoding step
        network(softmax=[8, 400, 400, 0]),  # heads and batch as one dimension
        network(attention=[1, 400, 64, 0]),  # a fused operator
        network(softmax=[1, 30, 5000, 0]),  # of words
        network(softmax=[1, 1000, 0, 0]),  # of classes
    )
    assert values == [expected, expected, expected, 0.0, 0.0]


def test_descriptions_of_sizes_beyond() -> None:
    trained = ranges_of(Graphs.of([network(softmax=[1, 4, 20, 20])]))
    texts = sizes_out_of_range(Graphs.of([network(), network(batch=2, softmax=[1, 4, 512, 512])]), trained)
    assert texts == {
        "batch": "batch 2 where training networks have 1",
        "attended positions": "attended positions 512 where training networks have 20",
    }
