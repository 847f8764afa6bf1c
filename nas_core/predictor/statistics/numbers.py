"""Statistics of what graphs have beside operations and edges: where operations stand, attributes, shapes, costs and
numbers of the whole network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs

__all__ = ["level_counts", "levels_of", "padded", "place_statistics", "sums_per_kind"]

Array = NDArray[np.float64]
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
