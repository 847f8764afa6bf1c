"""Operators of networks as kernels, and predictions beyond the sizes of the training."""

from __future__ import annotations

import numpy as np

from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.latency.by_graph.kernel_sum import (
    NUMBERS,
    SURROUNDINGS,
    Kernels,
    KernelSumModel,
)
from tests.latency.by_graph.toy import batched, toy_networks

CONV, RELU, RESHAPE = (KIND_NAMES.index(name) for name in ("conv", "relu", "reshape"))
DEPTHWISE, GROUPED, ONE = (0, 3, 3, 1, 2, 1, 16, 1), (0, 3, 3, 1, 2, 1, 4, 4), (0, 1, 1, 1, 0, 1, 1, 16)
SMALL = {"width": 8, "epochs": 10, "batch_size": 8, "members": 2}


def chain(*operators: tuple[int, tuple[int, ...]]) -> Graph:
    """An input, and these kinds with these attributes, one after another; only Reshape costs nothing."""
    count = len(operators) + 1
    ops = [0, *(kind for kind, _ in operators)]
    busy = np.array([kind not in (0, RESHAPE) for kind in ops], np.float64)
    return Graph(
        ops,
        [(i, i + 1) for i in range(count - 1)],
        attributes=[(0,) * 8, *(attributes for _, attributes in operators)],
        shapes=[(1, 16, 8, 8)] * count,
        costs=busy[:, None] * (2e9, 100, 4e6),
        static=[1, 2.0 * busy.sum(), 1, 1],
    )


def test_equal_operators_of_a_network_are_one_kernel() -> None:
    none = (0,) * 8
    repeated = [(CONV, ONE), (RELU, none)] * 3
    graphs = Graphs.of([chain(*repeated, (RESHAPE, none)), chain((CONV, DEPTHWISE)), chain((RELU, none), (CONV, ONE))])
    kernels = Kernels.of(graphs)
    assert kernels.numbers.shape == (len(kernels.kinds), NUMBERS) and kernels.first.tolist() == [0, 4, 5, 7]
    assert kernels.kinds[:4].tolist() == [CONV, RELU, CONV, RELU], "the first reads the input, the last a Reshape"
    assert kernels.counts.tolist() == [1, 2, 2, 1, 1, 1, 1]
    assert kernels.work[0].tolist() == [2, 4]
    half = SURROUNDINGS // 2
    assert np.flatnonzero(kernels.neighbours[2]).tolist() == [1, half + 1], "between two that go element by element"
    assert np.flatnonzero(kernels.neighbours[0]).tolist() == [half - 1, half + 1]
    rows, place = kernels.rows_of(np.array([2, 0]))
    assert rows.tolist() == [5, 6, 0, 1, 2, 3] and place.tolist() == [0, 0, 1, 1, 1, 1]


def test_kinds_of_convolutions() -> None:
    kernels = Kernels.of(Graphs.of([chain((CONV, DEPTHWISE), (CONV, GROUPED), (CONV, ONE))]))
    assert kernels.numbers[:, -5:].tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 1, 1]]


def test_the_sum_and_the_whole() -> None:
    data = toy_networks(40)
    models = [KernelSumModel(**SMALL, share_of_whole=share).fit(data) for share in (0, 1, 0.4)]
    (sums, no_std), (full, _), (both, std) = (model.estimate(data.graphs) for model in models)
    assert no_std is not None and (no_std == 0).all() and std is not None and (std > 0).all()
    np.testing.assert_allclose(both, sums**0.6 * full**0.4, rtol=1e-5)
    large, larger = ([batched(data.graphs[index], batch) for index in range(5)] for batch in (256, 1024))
    assert np.all(models[2].predict(larger) > 1.5 * models[2].predict(large)), "priced costs go on growing"
