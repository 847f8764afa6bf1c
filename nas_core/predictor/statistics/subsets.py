"""Ways through a graph that use only some operations, after GRAF (Kadlecova et al. 2024).

For a set of kinds of operations: how long the ways from the first to the last node are that meet no other kind, how
many of these operations stand at both ends, and how many edges they have.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_KINDS", "sets_of", "subset_names", "subset_statistics"]

Array = NDArray[np.float64]
FAR = 1e9
MOST_KINDS = 6
"""Up to so many kinds every set of them is looked at; of more, only single kinds, and all but one."""
_WHAT = ("longest way by", "shortest way by", "starts with", "ends with", "edges into each of", "edges out of each of")


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


def subset_names(sets: NDArray[np.bool_]) -> list[str]:
    """A name for each column, for people."""
    words = ["/".join(map(str, np.flatnonzero(row).tolist())) for row in sets]
    return [f"{what} {word}" for what in _WHAT for word in words]


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
