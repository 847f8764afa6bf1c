"""Removal of nodes that are on no path from input to output."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.graphs import Graphs


def on_paths(adjacency: NDArray[np.bool_], source: int = 0, target: int = -1) -> NDArray[np.bool_]:
    """Return a boolean mask ``(G, N)`` of nodes on a path from ``source`` to ``target``.

    Args:
        adjacency: ``(G, N, N)``.
    """
    return _reachable(adjacency, source) & _reachable(adjacency.transpose(0, 2, 1), target)


def compact(ops: NDArray[np.integer[Any]], adjacency: NDArray[np.bool_], keep: NDArray[np.bool_]) -> Graphs:
    """Return graphs of the nodes in ``keep``, and of the edges between them.

    Args:
        ops: operation indices ``(G, N)``.
        adjacency: ``(G, N, N)``.
        keep: boolean mask ``(G, N)`` with at least one node per graph.
    """
    order = np.argsort(~keep, axis=1, kind="stable")
    inner = adjacency & keep[:, :, None] & keep[:, None, :]
    rows = np.take_along_axis(inner, order[:, :, None], axis=1)
    return Graphs.from_dense(
        np.take_along_axis(ops, order, axis=1),
        np.take_along_axis(rows, order[:, None, :], axis=2),
        keep.sum(axis=1),
    )


def _reachable(adjacency: NDArray[np.bool_], source: int) -> NDArray[np.bool_]:
    reached = np.zeros(adjacency.shape[:2], np.bool_)
    reached[:, source] = True
    while True:
        expanded = reached | (reached[:, :, None] & adjacency).any(axis=1)
        if np.array_equal(expanded, reached):
            return reached
        reached = expanded
