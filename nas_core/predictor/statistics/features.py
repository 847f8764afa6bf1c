"""Numbers that describe a graph without learning: operations, edges, and all ways from its inputs to its outputs. What
else a graph has (attributes, shapes, static features) is not seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import GraphError, Graphs

__all__ = ["graph_statistics", "graphs_at_once", "statistics_count", "statistics_names"]

Array = NDArray[np.float64]
FAR = 1e9
CHUNK = 20_000
"""Graphs computed at once, fewer where there are many kinds of operations."""
CELLS = 2**26
"""Most numbers in a table of statistics that is computed at once: 512 MiB."""


def graph_statistics(graphs: Graphs, operations: int) -> Array:
    """``(G, F)`` statistics of each graph; nodes must stand in topological order.

    Counted are the operations, the pairs and triples of operations along edges, each operation's edges, its neighbours
    at both ends of the graph, and over all paths from the first to the last node: their number, the longest, the
    shortest, and how often each operation is met (mean, most, least).

    Args:
        operations: how many kinds there are; indices are below it. There are about operations³ statistics.

    Raises:
        GraphError: an operation index is too large, or an edge leads backward.
    """
    if len(graphs.ops) and int(graphs.ops.max()) >= operations:
        raise GraphError(f"operation index {int(graphs.ops.max())} in a graph; expected 0 to {operations - 1}")
    if (graphs.edges[:, 0] >= graphs.edges[:, 1]).any():
        raise GraphError("an edge leads backward in the order of nodes; give graphs in topological order")
    chunk = graphs_at_once(operations, CHUNK)
    parts = [
        np.concatenate(list(_parts(graphs.take(np.arange(start, min(start + chunk, len(graphs)))), operations)), 1)
        for start in range(0, len(graphs), chunk)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, statistics_count(operations)))


def graphs_at_once(operations: int, most: int) -> int:
    """How many graphs to describe at once, at most so many."""
    return max(1, min(most, CELLS // operations**3))


def statistics_count(operations: int) -> int:
    """How many statistics there are."""
    return operations**3 + operations**2 + 8 * operations + 7


def statistics_names(operations: int) -> list[str]:
    """A name for each column, for people."""
    kinds = range(operations)
    return (
        [f"nodes of {k}" for k in kinds]
        + [f"edges {k}>{m}" for k in kinds for m in kinds]
        + [f"paths {k}>{m}>{n}" for k in kinds for m in kinds for n in kinds]
        + [f"{what} of {k}" for what in ("edges into", "edges out") for k in kinds]
        + [f"{what} is {k}" for what in ("a parent of the last", "a child of the first") for k in kinds]
        + ["nodes", "edges", "edges into the last", "edges out of the first"]
        + ["log paths", "longest path", "shortest path"]
        + [f"{what} {k} on a path" for what in ("mean", "most", "least") for k in kinds]
    )


def _parts(graphs: Graphs, operations: int) -> Iterator[Array]:
    dense = graphs.dense()
    edges = dense.adjacency.astype(np.float64)
    count, width = dense.ops.shape
    present = np.arange(width) < dense.sizes[:, None]
    kinds = np.eye(operations)[dense.ops] * present[..., None]
    rows, last = np.arange(count), dense.sizes - 1
    incoming, outgoing = edges.transpose(0, 2, 1) @ kinds, edges @ kinds  # (G, N, K) kinds of parents and children
    yield kinds.sum(1)
    yield np.einsum("gik,gil->gkl", kinds, outgoing).reshape(count, -1)
    yield np.einsum("gik,gil,gim->gkml", incoming, outgoing, kinds, optimize=True).reshape(count, -1)
    into, out = edges.sum(1), edges.sum(2)
    yield np.einsum("gi,gik->gk", into, kinds)
    yield np.einsum("gi,gik->gk", out, kinds)
    yield incoming[rows, last]
    yield outgoing[:, 0]
    yield np.stack([dense.sizes, into.sum(1), into[rows, last], out[:, 0]], 1)
    yield _paths(edges, kinds, rows, last)


def _paths(edges: Array, kinds: Array, rows: NDArray[np.int64], last: NDArray[np.int64]) -> Array:
    """Statistics over all paths from the first to the last node, node after node."""
    count, width, operations = kinds.shape
    ways, longest, shortest = np.zeros((count, width)), np.full((count, width), -FAR), np.full((count, width), FAR)
    met = np.zeros((count, width, operations))
    most, least = np.full_like(met, -FAR), np.full_like(met, FAR)
    ways[:, 0], longest[:, 0], shortest[:, 0], most[:, 0], least[:, 0] = 1, 0, 0, 0, 0
    for node in range(1, width):
        parents = edges[:, :node, node]
        here = parents > 0
        ways[:, node] = (parents * ways[:, :node]).sum(1)
        met[:, node] = np.einsum("gi,gik->gk", parents, met[:, :node]) + ways[:, node, None] * kinds[:, node]
        longest[:, node] = np.where(here, longest[:, :node], -FAR).max(1) + 1
        shortest[:, node] = np.where(here, shortest[:, :node], FAR).min(1) + 1
        most[:, node] = np.where(here[..., None], most[:, :node], -FAR).max(1) + kinds[:, node]
        least[:, node] = np.where(here[..., None], least[:, :node], FAR).min(1) + kinds[:, node]
    ends = ways[rows, last]
    linked = ends > 0
    lengths = np.stack([np.log1p(ends), longest[rows, last], shortest[rows, last]], 1)
    on_paths = np.concatenate([met[rows, last] / np.maximum(ends, 1)[:, None], most[rows, last], least[rows, last]], 1)
    everything = np.concatenate([lengths, on_paths], 1)
    everything[~linked] = -1.0
    return everything
