"""Graphs for speed measurements."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.published import NASBENCH101, absent, nasbench101
from nas_core.graph import Graph, Graphs


def random_cells(count: int) -> Graphs:
    stream = np.random.default_rng(0)
    ops = stream.integers(0, 5, (count, 7))
    return Graphs.from_dense(ops, np.triu(stream.random((count, 7, 7)) < 0.4, 1))


def accuracy_graphs(count: int) -> Graphs:
    if absent(NASBENCH101):
        return random_cells(count)
    graphs = nasbench101()[0]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(graphs.sizes == 7))[:count]
    return graphs.take(rows)


def latency_graphs(sizes: list[int]) -> Graphs:
    """Return chains with shortcuts, 1.13 edges per node, and features in the ranges of NNLQP."""
    stream = np.random.default_rng(0)
    graphs = []
    for size in sizes:
        first = stream.integers(0, size - 2, round(0.13 * size))
        jumps = np.stack([first, np.minimum(first + stream.integers(2, 9, len(first)), size - 1)], 1)
        chain = np.stack([np.arange(size - 1), np.arange(1, size)], 1)
        attributes, shapes = stream.integers(0, 8, (size, 8)), stream.integers(1, 225, (size, 4))
        more = {"attributes": attributes, "shapes": shapes, "static": stream.random(4) * 10}
        graphs.append(Graph(stream.integers(0, 28, size), np.concatenate([chain, jumps]), **more))
    return Graphs.of(graphs)
