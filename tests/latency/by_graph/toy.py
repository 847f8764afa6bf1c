"""Made-up networks whose latency is a sum over their operators."""

from __future__ import annotations

import numpy as np

from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each

CONV, RELU, ADD, MATMUL = (KIND_NAMES.index(name) for name in ("conv", "relu", "add", "matmul"))
MS_PER_GFLOP = {CONV: 20.0, MATMUL: 8.0}


def toy_graph(stream: np.random.Generator, kinds: tuple[int, ...] = (CONV, RELU, ADD), nodes: int = 0) -> Graph:
    """A chain with some shortcuts."""
    count = nodes or int(stream.integers(6, 14))
    ops = np.concatenate([[0], stream.choice(kinds, count - 1)])
    width, side = stream.integers(8, 65), stream.choice([16, 24, 32])
    elements = np.where(ops > 0, width * side**2, 0)
    flops = np.where(ops == CONV, elements * 2 * width, np.where(ops == MATMUL, elements * 4 * width, elements))
    params = np.where(np.isin(ops, (CONV, MATMUL)), width * width, 0)
    costs = np.stack([flops * (ops > 0), params, 2 * elements + params], 1)
    edges = [(i, i + 1) for i in range(count - 1)] + [(i, i + 3) for i in range(0, count - 3, 3)]
    return Graph(
        ops,
        edges,
        attributes=np.where(ops[:, None] == CONV, [[3, 1, 1, 1, 1, 0, 0, 0]], 0),
        shapes=np.tile([1, width, side, side], (count, 1)),
        costs=costs,
        static=[1, costs[:, 0].sum() / 1e9, costs[:, 1].sum() / 1e7, costs[:, 2].sum() / 1e7],
    )


def toy_latency_ms(graph: Graph) -> float:
    """A price for each kind's FLOPs, one for memory access, one for each operator."""
    assert graph.costs is not None
    prices = np.array([MS_PER_GFLOP.get(int(op), 0.0) for op in graph.ops])
    return float((prices * graph.costs[:, 0] / 1e9 + 0.2 * graph.costs[:, 2] / 1e6 + 0.01 * (graph.ops > 0)).sum())


def batched(graph: Graph, batch: int) -> Graph:
    """The same network for several images at once: parameters are read once."""
    assert graph.costs is not None and graph.static is not None and graph.shapes is not None
    costs, static, shapes = graph.costs.copy(), graph.static.copy(), graph.shapes.copy()
    costs[:, 0] *= batch
    costs[:, 2] = batch * (costs[:, 2] - costs[:, 1]) + costs[:, 1]
    static[:] = [batch, costs[:, 0].sum() / 1e9, static[2], costs[:, 2].sum() / 1e7]
    shapes[:, 0] = batch
    return Graph(graph.ops, graph.edges, attributes=graph.attributes, shapes=shapes, costs=costs, static=static)


def toy_networks(count: int = 60, seed: int = 0) -> NetworkLatencies:
    """Three families: convolutions, products, and both."""
    stream = np.random.default_rng(seed)
    kinds = {"conv": (CONV, RELU, ADD), "product": (MATMUL, RELU, ADD), "mixed": (CONV, MATMUL, RELU, ADD)}
    names = [list(kinds)[i % 3] for i in range(count)]
    graphs = [toy_graph(stream, kinds[name]) for name in names]
    return NetworkLatencies(
        Graphs.of(graphs),
        np.array([toy_latency_ms(graph) for graph in graphs]),
        np.array(names),
        np.array([f"{name}-{i}" for i, name in enumerate(names)]),
        last_of_each(names, 0.2),
    )
