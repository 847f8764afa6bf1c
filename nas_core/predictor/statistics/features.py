"""Numbers that describe a graph without learning: operations, edges, and all ways from its inputs to its outputs. What
else a graph has (attributes, shapes, static features) is not seen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import GraphError, Graphs

Array = NDArray[np.float64]
FAR = 1e9
MOST_KINDS = 6
"""Up to so many kinds every set of them is looked at; of more, only single kinds, and all but one."""


def sets_of(inner: NDArray[np.int64], kinds: int) -> NDArray[np.bool_]:
    """``(S, kinds)`` sets of the kinds that stand between the ends of graphs.

    Args:
        inner: those kinds, ascending.
        kinds: how many there are in all.
    """
    if len(inner) <= MOST_KINDS:
        chosen = [set(some) for size in range(1, len(inner) + 1) for some in combinations(inner.tolist(), size)]
    else:
        every = set(inner.tolist())
        chosen = [{kind} for kind in inner.tolist()] + [every - {kind} for kind in inner.tolist()] + [every]
    sets = np.zeros((len(chosen), kinds), np.bool_)
    for row, some in zip(sets, chosen, strict=True):
        row[sorted(some)] = True
    return sets


def subset_statistics(edges: Array, kinds: Array, last: NDArray[np.int64], sets: NDArray[np.bool_]) -> Array:
    """``(G, 6 S)`` statistics of graphs in topological order.

    The longest way is 0 where there is none, the shortest is given as one over its length, so that no way is the end of
    the longer ones.

    Args:
        edges: ``(G, N, N)``.
        kinds: ``(G, N, K)`` one-hot kinds; 0 where there is no node.
        last: ``(G,)`` the last node of each.
        sets: ``(S, K)``.
    """
    count, width, _ = kinds.shape
    rows, members = np.arange(count), sets.T.astype(np.float64)
    among = kinds @ members  # (G, N, S) whether a node is of the set
    allowed = among > 0
    allowed[rows, last] = True
    longest, shortest = np.full(among.shape, -FAR), np.full(among.shape, FAR)
    longest[:, 0] = shortest[:, 0] = 0.0
    for node in range(1, width):
        for parent in range(node):
            linked = (edges[:, parent, node] > 0)[:, None] & allowed[:, node]
            if linked.any():
                np.maximum(longest[:, node], longest[:, parent] + 1, out=longest[:, node], where=linked)
                np.minimum(shortest[:, node], shortest[:, parent] + 1, out=shortest[:, node], where=linked)
    ends = longest[rows, last]
    reached = ends > 0
    into, out = edges.sum(1)[:, :, None] * among, edges.sum(2)[:, :, None] * among
    size = np.maximum(among.sum(1), 1)
    return np.concatenate(
        [
            np.where(reached, ends, 0.0),
            np.where(reached, 1 / np.maximum(shortest[rows, last], 1), 0.0),
            np.einsum("gn,gns->gs", edges[:, 0], among),
            np.einsum("gn,gns->gs", edges[rows, :, last], among),
            into.sum(1) / size,
            out.sum(1) / size,
        ],
        1,
    )


MOST_LEVELS = 64
"""An attribute of more different values is not counted value by value."""
MOST_COUNTS = 4096
"""Nor are attributes, where that many pairs of a kind and a value would be counted."""


def levels_of(attributes: NDArray[np.float32], kinds: int) -> list[NDArray[np.float32]]:
    """The values ``(V,)`` of each attribute that are counted one by one; none where there are many.

    Args:
        attributes: ``(nodes, A)``.
        kinds: of operations.
    """
    values = [np.unique(column) for column in attributes.T]
    counted = [each if 1 < len(each) <= MOST_LEVELS else each[:0] for each in values]
    while sum(map(len, counted)) * kinds > MOST_COUNTS:
        most = max(range(len(counted)), key=lambda column: len(counted[column]))
        counted[most] = counted[most][:0]
    return counted


def level_counts(column: Array, kinds: Array, levels: NDArray[np.float32]) -> Array:
    """``(G, V K)``: how many operations of each kind have each of the values of an attribute ``(G, N)``."""
    equal = (column[..., None].astype(np.float32) == levels).astype(np.float64)
    counts: Array = np.einsum("gnv,gnk->gvk", equal, kinds).reshape(len(column), -1)
    return counts


def sums_per_kind(values: Array, kinds: Array) -> Array:
    """``(G, 2 A K)``: sum and mean over the operations of each kind, of values ``(G, N, A)``."""
    sums = np.einsum("gna,gnk->gak", values, kinds)
    means = sums / np.maximum(kinds.sum(1), 1)[:, None]
    return np.concatenate([sums.reshape(len(values), -1), means.reshape(len(values), -1)], 1)


def place_statistics(edges: Array, kinds: Array, present: NDArray[np.bool_]) -> Array:
    """``(G, 4 K)``: sum and mean over the operations of each kind, of the most edges from any start to it, and of the
    most from it to any end."""
    count, width = present.shape
    before, after = np.zeros((count, width)), np.zeros((count, width))
    for node in range(1, width):
        before[:, node] = ((before[:, :node] + 1) * edges[:, :node, node]).max(1)
    for node in range(width - 2, -1, -1):
        after[:, node] = ((after[:, node + 1 :] + 1) * edges[:, node, node + 1 :]).max(1)
    return sums_per_kind(np.stack([before, after], 2), kinds)


def padded(graphs: Graphs, values: NDArray[np.float32], width: int) -> Array:
    """Numbers of nodes ``(nodes of all graphs, A)`` as ``(G, width, A)``, 0 where there is no node."""
    found = np.zeros((len(graphs), width, values.shape[1]))
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    first = np.concatenate([[0], np.cumsum(graphs.sizes)])
    found[graph, np.arange(len(values)) - np.repeat(first[:-1], graphs.sizes)] = values
    return found


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
