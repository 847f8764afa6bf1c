"""Small random graphs and networks for tests of predictors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nas_core.graph import Graph, Graphs
from nas_core.predictor import NNFormer, NNFormerConfig

TINY: dict[str, Any] = {"dim": 32, "depth": 2, "epochs": 8, "lr": 1e-3}
"""Settings of a predictor that is fitted in a moment."""


def random_graph(nodes: int, stream: np.random.Generator, *, density: float = 0.4, features: bool = False) -> Graph:
    """Nodes in topological order; operations 0 to 4."""
    adjacency = np.triu(stream.random((nodes, nodes)) < density, 1)
    more = {
        "attributes": stream.integers(0, 7, (nodes, 8)),
        "shapes": stream.integers(1, 60, (nodes, 4)),
        "static": stream.random(4),
        "costs": stream.integers(0, 2, (nodes, 3)) * stream.integers(1, 10**9, (nodes, 3)),
    }
    return Graph.from_adjacency(adjacency, stream.integers(0, 5, nodes), **(more if features else {}))


def random_graphs(sizes: tuple[int, ...], seed: int = 0, *, features: bool = False, density: float = 0.4) -> Graphs:
    stream = np.random.default_rng(seed)
    return Graphs.of([random_graph(size, stream, features=features, density=density) for size in sizes])


def sizes_of_operations(graphs: Graphs) -> np.ndarray:
    """A target that depends on operations and edges, from 0 to about 1."""
    values = [0.1 * (graph.ops == 2).sum() + 0.03 * len(graph.edges) for graph in graphs]
    return np.array(values) / 1.5


def paths_of(graph: Graph) -> list[list[int]]:
    """All ways from the first to the last node."""
    children = {node: [int(t) for s, t in graph.edges if s == node] for node in range(len(graph))}
    paths, open_ = [], [[0]]
    while open_:
        path = open_.pop()
        if path[-1] == len(graph) - 1 and len(path) > (len(graph) > 1):
            paths.append(path)
        open_ += [[*path, child] for child in children[path[-1]]]
    return paths


def lively(config: NNFormerConfig) -> NNFormer:
    """A model without initial constants in its biases, norms and scales."""
    torch.manual_seed(5)
    model = NNFormer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model
