"""Sums of quantities along the ways through graphs, met in several manners: on all ways, on the longest, by chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Along", "Ways"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ways:
    """Graphs in topological order, whose first node is the only one without a parent, padded to equal size."""

    edges: NDArray[np.bool_]
    """``(G, N, N)``"""
    last: NDArray[np.int64]
    """``(G,)`` the last node of each"""

    def parents(self) -> Iterator[tuple[int, Array, NDArray[np.bool_]]]:
        """For each node but the first its parents ``(G, n)``, and where it has any ``(G,)``."""
        for node in range(1, self.edges.shape[1]):
            here = self.edges[:, :node, node]
            yield node, here.astype(np.float64), np.asarray(here.any(1))

    def at_last(self, values: NDArray[Any]) -> Array:
        """What stands at the last node, of values ``(G, N, ...)``."""
        return values[np.arange(len(values)), self.last].astype(np.float64)

    def count(self, allowed: NDArray[np.bool_]) -> Array:
        """``(G,)`` how many ways lead from the first node to the last by nodes ``(G, N)`` that are allowed."""
        ways = np.zeros(allowed.shape)
        ways[:, 0] = 1.0
        for node, parents, _ in self.parents():
            ways[:, node] = (parents * ways[:, :node]).sum(1) * allowed[:, node]
        return self.at_last(ways)

    def of_last(self, values: Array) -> Array:
        """``(G, ...)`` mean of values ``(G, N, ...)`` over the parents of the last node."""
        into = self.at_last(self.edges.transpose(0, 2, 1))
        return np.asarray(np.einsum("gn,gn...->g...", into, values) / np.maximum(into.sum(1), 1)[:, None])


@dataclass(frozen=True)
class Along:
    """``(G, N, Q)`` sums of quantities from the first node to each, itself included."""

    mean: Array
    """Over all ways"""
    most: Array
    least: Array
    walk: Array
    """Over walks that go back from a node to any of its parents with equal probability"""

    @classmethod
    def of(cls, ways: Ways, values: Array) -> Along:
        """Sum up values ``(G, N, Q)`` of the nodes."""
        mean, most, least, walk = (values.copy() for _ in range(4))
        number = np.zeros(values.shape[:2])
        number[:, 0] = 1.0
        for node, parents, any_ in ways.parents():
            shares = parents / np.maximum(parents.sum(1), 1)[:, None]
            number[:, node] = (parents * number[:, :node]).sum(1)
            weights = parents * number[:, :node] / np.maximum(number[:, node], 1)[:, None]
            here, reached = parents[..., None] > 0, any_[:, None]
            mean[:, node] += np.einsum("gi,giq->gq", weights, mean[:, :node])
            walk[:, node] += np.einsum("gi,giq->gq", shares, walk[:, :node])
            most[:, node] += np.where(reached, np.where(here, most[:, :node], -np.inf).max(1), 0)
            least[:, node] += np.where(reached, np.where(here, least[:, :node], np.inf).min(1), 0)
        return cls(mean, most, least, walk)
