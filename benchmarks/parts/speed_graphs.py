"""Graphs of speed measurements."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.published import NASBENCH101, absent, nasbench101
from nas_core.graph import Graph, Graphs
from nas_core.predictor import NNFormerConfig
from nas_core.predictor.speed import random_graphs


def accuracy_graphs(count: int) -> Graphs:
    """Return cells of 7 nodes, of NAS-Bench-101 or random."""
    if absent(NASBENCH101):
        return random_graphs([7] * count, NNFormerConfig(operations=5))
    graphs = nasbench101()[0]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(graphs.sizes == 7))[:count]
    return graphs.take(rows)


def latency_graphs(sizes: list[int]) -> Graphs:
    """Return chains with shortcuts, 1.13 edges per node, and features in the ranges of NNLQP."""
    stream = np.random.default_rng(0)
    made = []
    for size in sizes:
        first = stream.integers(0, size - 2, round(0.13 * size))
        jumps = np.stack([first, np.minimum(first + stream.integers(2, 9, len(first)), size - 1)], 1)
        chain = np.stack([np.arange(size - 1), np.arange(1, size)], 1)
        attributes, shapes = stream.integers(0, 8, (size, 8)), stream.integers(1, 225, (size, 4))
        more = {"attributes": attributes, "shapes": shapes, "static": stream.random(4) * 10}
        made.append(Graph(stream.integers(0, 28, size), np.concatenate([chain, jumps]), **more))
    return Graphs.of(made)
