"""Graphs for speed measurements: random, or cells of NAS-Bench-101."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.published import NASBENCH101, absent, nasbench101
from nas_core.graph import Graph, Graphs


def random_cells(count: int) -> Graphs:
    rng = np.random.default_rng(0)
    ops = rng.integers(0, 5, (count, 7))
    return Graphs.from_dense(ops, np.triu(rng.random((count, 7, 7)) < 0.4, 1))


def cells_with_accuracies(count: int) -> tuple[Graphs, NDArray[np.float64]]:
    """Return NAS-Bench-101 with test accuracies; if the table is missing, ``count`` random cells with a formula."""
    if absent(NASBENCH101):
        graphs = random_cells(count)
        return graphs, np.array([float((graph.ops == 2).mean() + 0.1 * len(graph.edges)) for graph in graphs])
    return nasbench101()


def accuracy_graphs(count: int) -> Graphs:
    if absent(NASBENCH101):
        return random_cells(count)
    graphs = nasbench101()[0]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(graphs.sizes == 7))[:count]
    return graphs.take(rows)


def latency_graphs(sizes: list[int]) -> Graphs:
    """Return chains with shortcuts, 1.13 edges per node, and features in the ranges of NNLQP."""
    rng = np.random.default_rng(0)
    graphs = []
    for size in sizes:
        starts = rng.integers(0, size - 2, round(0.13 * size))
        shortcuts = np.stack([starts, np.minimum(starts + rng.integers(2, 9, len(starts)), size - 1)], 1)
        chain = np.stack([np.arange(size - 1), np.arange(1, size)], 1)
        attributes, shapes = rng.integers(0, 8, (size, 8)), rng.integers(1, 225, (size, 4))
        features = {"attributes": attributes, "shapes": shapes, "static": rng.random(4) * 10}
        graphs.append(Graph(rng.integers(0, 28, size), np.concatenate([chain, shortcuts]), **features))
    return Graphs.of(graphs)
