"""Which vectors of metrics beat which: non-dominated sorting and crowding.

Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC 6(2), 2002, III.A, III.B and VI.A.
All metrics are minimised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def fronts(values: Array, outside: Array) -> NDArray[np.int64]:
    """The front each vector belongs to ``(n,)``: 0 if no other beats it, 1 if only those of front 0 do, and so on.

    Of two vectors the one with the smaller violation beats the other, so the feasible ones come first; at equal
    violation it is the one that is at most as large in all metrics and smaller in one.

    Args:
        values: ``(n, m)``, finite.
        outside: violation of the limits ``(n,)``, 0 for what is within them.
    """
    at_most = np.ones((len(values), len(values)), np.bool_)
    for column in values.T:
        at_most &= column[:, None] <= column[None, :]
    less, equal = outside[:, None] < outside[None, :], outside[:, None] == outside[None, :]
    beats = less | (equal & at_most & ~at_most.T)
    front = np.full(len(values), -1, np.int64)
    beaten_by = beats.sum(0)
    level = 0
    while (left := front < 0).any():
        first = left & (beaten_by == 0)
        front[first] = level
        beaten_by -= beats[first].sum(0)
        level += 1
    return front


def crowding(values: Array) -> Array:
    """How far the neighbours of each vector of one front are apart ``(n,)``: the sum over the metrics of the gap
    between the next smaller and the next larger value, relative to the range; infinity at the ends."""
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        if span > 0:
            distance[order[[0, -1]]] = np.inf
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def best_first(values: Array, outside: Array) -> NDArray[np.int64]:
    """Indices ``(n,)`` by front, within a front the loneliest first, among equals the earlier."""
    front = fronts(values, outside)
    distance = np.zeros(len(values))
    for level in np.unique(front):
        distance[front == level] = crowding(values[front == level])
    order: NDArray[np.int64] = np.lexsort((-distance, front))
    return order
