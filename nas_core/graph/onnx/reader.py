"""Reader of ONNX models as graphs for latency models."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.onnx.encoding import Encoded, encode
from nas_core.graph.onnx.shapes import Shapes, read_network

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnnxNetwork:
    """An ONNX model as a graph of N nodes, with its costs."""

    name: str
    """Path of the file, or name of a model in memory."""
    graph: Graph
    """Graph with all features. ``static`` is batch size, FLOPs / 1e9, parameters / 1e7, memory access / 1e7."""
    tensors: tuple[str, ...]
    """``(N,)`` output tensor of each node."""
    operators: tuple[str, ...]
    """``(N,)`` ONNX operator of each node, or ``Input``."""
    flops: NDArray[np.int64]
    """``(N,)`` FLOPs. If an operator has several outputs, the first one has its costs."""
    params: NDArray[np.int64]
    """``(N,)`` elements of parameters."""
    access: NDArray[np.int64]
    """``(N,)`` elements read and written."""
    flops_g: float
    params_m: float
    """Parameters in millions. Shared ones count once."""
    access_m: float
    """Elements read and written, in millions."""
    unknown: Mapping[str, int]
    """Number of operators of each unknown type."""


def read_onnx(
    source: Any,
    *,
    shapes: Shapes | None = None,
    batch: int | None = None,
    warn: bool = True,
) -> OnnxNetwork:
    """Read an ONNX model, with or without its weights.

    The order of nodes does not depend on the order and names in the file. External data files need not exist.

    Args:
        source: path, content of a file as bytes, or ``onnx.ModelProto``.
        shapes: shapes of inputs (``{"x": (1, 3, 224, 224)}``), sizes of open dimensions (``{"batch": 1}``), or shapes
            of tensors that onnx cannot infer.
        batch: first dimension of all inputs that are not in ``shapes``.
        warn: log unknown operators. They count as ``other``, without FLOPs.

    Raises:
        GraphError: the file is damaged or not ONNX, or has a cycle, an open dimension or an unknown shape.
        ConfigError: ``shapes`` do not fit the model.
        MissingHostError: onnx is not installed.
    """
    network = read_network(source, shapes, batch)
    try:
        encoded = encode(network)
        read = _canonical_network(network.name, encoded)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise GraphError(
            f"{network.name}: attributes or sizes do not fit an operator ({error}); the file is damaged, export it"
            " again"
        ) from error
    if warn and encoded.unknown:
        _log.warning("%s", describe_unknown(network.name, encoded.unknown))
    return read


def _canonical_network(name: str, encoded: Encoded) -> OnnxNetwork:
    names = list(encoded.nodes)
    keys = list(zip(encoded.ops, encoded.attributes, encoded.shapes, strict=True))
    order = canonical_order(keys, names, encoded.edges)
    rank = np.argsort(order)
    total = encoded.total
    costs = np.array(encoded.costs, np.int64)[order]
    graph = Graph(
        np.array(encoded.ops)[order],
        rank[np.array(encoded.edges)],
        attributes=np.array(encoded.attributes, np.float32)[order],
        shapes=np.array(encoded.shapes, np.float32)[order],
        costs=costs,
        static=(encoded.batch, total.flops / 1e9, total.params / 1e7, total.access / 1e7),
    )
    return OnnxNetwork(
        name,
        graph,
        tuple(names[node] for node in order),
        tuple(encoded.operations[node] for node in order),
        costs[:, 0],
        costs[:, 1],
        costs[:, 2],
        total.flops / 1e9,
        total.params / 1e6,
        total.access / 1e6,
        encoded.unknown,
    )


def canonical_order(keys: Sequence[Hashable], names: Sequence[str], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return an order of nodes that does not depend on the order in the file.

    Nodes are sorted by distance from the inputs, by keys of node, ancestors and descendants, by positions of parents,
    and by name.

    Args:
        keys: N tuples of numbers.
        names: N names.
        edges: pairs (source, target) with source < target.
    """
    count = len(keys)
    parents: list[list[int]] = [[] for _ in range(count)]
    children: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        parents[target].append(source)
        children[source].append(target)
    above, below, depth = [0] * count, [0] * count, [0] * count
    for node in range(count):
        above[node] = hash((keys[node], *sorted([above[p] for p in parents[node]])))
        depth[node] = max([depth[p] + 1 for p in parents[node]], default=0)
    for node in reversed(range(count)):
        below[node] = hash((keys[node], *sorted([below[c] for c in children[node]])))
    levels: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node in range(count):
        levels[depth[node]].append(node)
    order: list[int] = []
    rank = [0] * count
    for level in levels:
        if len(level) > 1:
            level.sort(key=lambda n: (above[n], below[n], sorted([rank[p] for p in parents[n]]), names[n]))
        for node in level:
            rank[node] = len(order)
            order.append(node)
    return order


def describe_unknown(name: str, unknown: Mapping[str, int]) -> str:
    counts = ", ".join(f"{operator} x {count}" for operator, count in sorted(unknown.items()))
    return f"{name} has unknown operators, which count as 'other' without FLOPs: {counts}"


def onnx_graph(source: Any, shapes: Shapes | None = None, batch: int | None = None) -> Graph:
    """Read an ONNX model as a graph, see :func:`read_onnx`."""
    return read_onnx(source, shapes=shapes, batch=batch).graph
