"""ONNX models as graphs that latency models read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import unknown_choice
from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.onnx.canonical_order import canonical_order
from nas_core.graph.onnx.encoding.corrected import encode_corrected
from nas_core.graph.onnx.encoding.features import FEATURES
from nas_core.graph.onnx.encoding.nodes import Encoded
from nas_core.graph.onnx.encoding.released import encode_released
from nas_core.graph.onnx.shapes.binding import Shapes
from nas_core.graph.onnx.shapes.infer import read_network

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnnxNetwork:
    """A model as a graph of N nodes, and what it costs on paper."""

    name: str
    """The path as it was given; of a model in memory, its graph's name."""
    graph: Graph
    """``attributes`` (N, 8), ``shapes`` (N, 4), ``costs`` (N, 3) and ``static``: batch, FLOPs / 1e9, parameters / 1e7,
    memory access / 1e7."""
    tensors: tuple[str, ...]
    """``(N,)`` which tensor of the file each node gives."""
    operators: tuple[str, ...]
    """``(N,)`` its ONNX operator, or ``Input``."""
    flops: NDArray[np.int64]
    """``(N,)``; an operator with several outputs has its costs at the first of them."""
    params: NDArray[np.int64]
    """``(N,)`` elements of the parameters it reads."""
    access: NDArray[np.int64]
    """``(N,)`` elements it reads and writes."""
    flops_g: float
    params_m: float
    """Shared parameters count once (as released: as often as they are read)."""
    access_m: float
    """In million elements."""
    unknown: Mapping[str, int]
    """Operators that the encoding does not know, and how many there are."""


def read_onnx(
    source: Any,
    *,
    shapes: Shapes | None = None,
    batch: int | None = None,
    features: str = "corrected",
    warn: bool = True,
) -> OnnxNetwork:
    """Read an ONNX model, with or without its weights; external data need not exist.

    Args:
        source: a path, the bytes of a file, or an ``onnx.ModelProto``, which is not changed.
        shapes: for inputs with open dimensions: a shape for each, or a number for an open dimension's name
            (``{"x": (1, 3, 224, 224)}``, ``{"batch": 1}``); also for tensors whose shape onnx cannot infer.
        batch: first dimension of all inputs that have no such shape, whatever the file says.
        features: ``corrected`` (:mod:`nas_core.graph.onnx.encoding.corrected`) or ``released`` (as published).
        warn: log unknown operators in one line; they count as ``other``, without FLOPs.

    Returns:
        The nodes stand in an order that depends neither on that of the file nor on its names.

    Raises:
        GraphError: no ONNX file, a damaged one, a cycle, an open dimension without a number, a shape that cannot be
            inferred. ConfigError: shapes that do not fit the model. MissingHostError: onnx is not installed.
    """
    if features not in FEATURES:
        raise unknown_choice("encoding of ONNX operators", features, FEATURES)
    network = read_network(source, shapes, batch)
    try:
        made = encode_corrected(network) if features == "corrected" else encode_released(network)
        read = _ordered(network.name, made)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise GraphError(
            f"{network.name}: attributes or sizes do not fit their operators ({error}); the file is damaged, export it "
            "again"
        ) from error
    if warn and made.unknown:
        _log.warning("%s", describe_unknown(network.name, made.unknown))
    return read


def _ordered(name: str, made: Encoded) -> OnnxNetwork:
    names = list(made.nodes)
    keys = list(zip(made.ops, made.attributes, made.shapes, strict=True))
    order = canonical_order(keys, names, made.edges)
    place = np.argsort(order)
    total = made.total
    costs = np.array(made.costs, np.int64)[order]
    graph = Graph(
        np.array(made.ops)[order],
        place[np.array(made.edges)],
        attributes=np.array(made.attributes, np.float32)[order],
        shapes=np.array(made.shapes, np.float32)[order],
        costs=costs,
        static=(made.batch, total.flops / 1e9, total.params / 1e7, total.access / 1e7),
    )
    return OnnxNetwork(
        name,
        graph,
        tuple(names[node] for node in order),
        tuple(made.operations[node] for node in order),
        costs[:, 0],
        costs[:, 1],
        costs[:, 2],
        total.flops / 1e9,
        total.params / 1e6,
        total.access / 1e6,
        made.unknown,
    )


def describe_unknown(name: str, unknown: Mapping[str, int]) -> str:
    """Say in one line which operators of a network the encoding does not know, and how many of each it has."""
    listed = ", ".join(f"{operator} x {count}" for operator, count in sorted(unknown.items()))
    return f"{name} has operators that this encoding does not know, which count as 'other' without FLOPs: {listed}"


def onnx_graph(
    source: Any, shapes: Shapes | None = None, batch: int | None = None, features: str = "corrected"
) -> Graph:
    """The graph alone; see :func:`read_onnx`."""
    return read_onnx(source, shapes=shapes, batch=batch, features=features).graph
