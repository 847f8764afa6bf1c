"""Graphs from arrays of a file, which may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.graph import FEATURES, GraphError, check_acyclic, whole_numbers
from nas_core.graph.graphs import Graphs


def stored_graphs(arrays: Mapping[str, NDArray[Any]]) -> Graphs:
    """Graphs from the arrays ``ops``, ``edges``, ``sizes``, ``edge_counts`` and those of :data:`FEATURES` that are
    there, as :class:`Graphs` holds them.

    Raises:
        GraphError: they contradict each other, an edge leaves its graph, a graph has a cycle, or a cost is below 0.
    """
    ops, edges, sizes, counts = (whole_numbers(arrays[name], name) for name in ("ops", "edges", "sizes", "edge_counts"))
    edges = edges.reshape(0, 2) if edges.size == 0 else edges
    flat = {ops.ndim, sizes.ndim, counts.ndim} == {1} and len(sizes) == len(counts)
    if not flat or edges.ndim != 2 or edges.shape[1] != 2:
        raise GraphError(
            f"ops {ops.shape}, edges {edges.shape}, sizes {sizes.shape} and edge_counts {counts.shape}; expected"
            " (nodes,), (edges, 2), (G,) and (G,)"
        )
    most = max(len(ops), len(edges))
    if len(sizes) and (sizes.min() < 1 or counts.min() < 0 or max(sizes.max(), counts.max()) > most):
        raise GraphError("a graph without nodes, or with more than there are; the file is damaged")
    if sizes.sum() != len(ops) or counts.sum() != len(edges):
        raise GraphError(f"{sizes.sum()} nodes and {counts.sum()} edges are told of, {len(ops)} and {len(edges)} there")
    if len(ops) and (ops.min() < 0 or ops.max() > np.iinfo(np.int16).max):
        raise GraphError(f"operation indices reach from {ops.min()} to {ops.max()}; expected 0 to 32767")
    if len(edges):
        if edges.min() < 0 or (edges >= np.repeat(sizes, counts)[:, None]).any():
            raise GraphError("an edge leads to a node beyond the size of its graph")
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        check_acyclic(edges + np.repeat(first, counts)[:, None], len(ops))
    features: dict[str, Any] = {
        name: _feature(name, arrays[name], len(ops), len(sizes)) for name in FEATURES if name in arrays
    }
    return Graphs(ops.astype(np.int16), edges.astype(np.int32), sizes, counts, **features)


def _feature(name: str, values: NDArray[Any], nodes: int, graphs: int) -> NDArray[np.float32]:
    rows = graphs if name == "static" else nodes
    width = {"shapes": 4, "costs": 3}.get(name)
    fits = values.ndim == 2 and len(values) == rows and (width is None or values.shape[1] == width)
    if not fits or values.dtype.kind not in "biuf":
        expected = f"({rows}, {width or 'K'})"
        raise GraphError(f"{name} of graphs have shape {values.shape} of {values.dtype}; expected {expected}")
    numbers = values.astype(np.float32)
    if not np.isfinite(numbers).all():
        raise GraphError(f"{name} of a graph hold a value that is no number")
    if name == "costs" and numbers.min(initial=0) < 0:
        raise GraphError(f"costs of a graph hold {numbers.min():g}; expected none below 0")
    return numbers
