"""A set of measured networks as small as can be."""

from __future__ import annotations

import numpy as np

from nas_core.graph import Graph, Graphs
from nas_core.latency.by_graph.data import NetworkLatencies


def data(families: str = "aaabbb", held_out: str = "001001") -> NetworkLatencies:
    graphs = [
        Graph([0, i], [(0, 1)], attributes=[[i], [0]], shapes=[[1, i, 0, 0]] * 2, static=[1, i])
        for i in range(len(families))
    ]
    return NetworkLatencies(
        Graphs.of(graphs),
        np.arange(1.0, len(families) + 1),
        np.array(list(families)),
        np.array([f"n{i}" for i in range(len(families))]),
        np.array([digit == "1" for digit in held_out]),
    )
