"""Features of networks that have the same meaning in every search space, from descriptions of operations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import GraphError, Graphs, Operation, with_operations
from nas_core.graph.io_nodes import open_ended, with_ends

Array = NDArray[np.float64]
CHANNELS = 32  # assumed number of channels, for the number of weights of depth-wise relative to full convolutions
QUANTITIES = (
    "convolutions", "weights", "receptive field", "spatial", "pooling", "identities", "average pooling", "halvings",
    "doublings",
)  # fmt: skip
"""Quantities of an operation. Weights are relative to the squared number of channels. Halvings are of the resolution,
doublings of the channels."""
CLASSES = ("spatial", "pointwise", "pooling", "identity")


def _class(operation: Operation) -> int:
    if operation.kind in ("end", "identity"):
        return 3
    if operation.kind == "pooling":
        return 2
    return 0 if operation.kernel > 1 or operation.kind == "attention" else 1


def _quantities(operation: Operation) -> list[float]:
    layer = operation.kind in ("convolution", "linear", "attention")
    repeats, pools = operation.repeats if layer else 0, operation.kind == "pooling"
    reach = (operation.kernel - 1) * operation.dilation * (operation.repeats if layer else 1)
    return [
        repeats,
        repeats * _weights(operation),
        reach if layer or pools else 0,
        repeats * (_class(operation) == 0),
        pools,
        operation.kind == "identity",
        pools and operation.average,
        math.log2(operation.stride),
        math.log2(operation.channels),
    ]


def _weights(operation: Operation) -> float:
    if operation.kind == "attention":
        return 4.0
    window, inner = operation.kernel**2, operation.expansion
    if operation.groups:
        return window * inner / operation.groups
    pointwise = 1.0 if inner == 1 else 2 * inner
    return inner * window / CHANNELS + pointwise


@dataclass(frozen=True)
class Paths:
    """Paths through padded graphs in topological order, in which only the first node has no parent."""

    edges: NDArray[np.bool_]
    """``(G, N, N)``"""
    last: NDArray[np.int64]
    """``(G,)`` last node of each graph"""

    def parents(self) -> Iterator[tuple[int, Array, NDArray[np.bool_]]]:
        """Yield each node n but the first, a mask of its parents ``(G, n)``, and whether it has any ``(G,)``."""
        for node in range(1, self.edges.shape[1]):
            mask = self.edges[:, :node, node]
            yield node, mask.astype(np.float64), np.asarray(mask.any(1))

    def at_last(self, values: NDArray[Any]) -> Array:
        return values[np.arange(len(values)), self.last].astype(np.float64)

    def count(self, allowed: NDArray[np.bool_]) -> Array:
        """Return the number of paths ``(G,)`` from the first to the last node over allowed nodes ``(G, N)``."""
        counts = np.zeros(allowed.shape)
        counts[:, 0] = 1.0
        for node, parents, _ in self.parents():
            counts[:, node] = (parents * counts[:, :node]).sum(1) * allowed[:, node]
        return self.at_last(counts)

    def mean_before_last(self, values: Array) -> Array:
        """Return the mean of values of nodes ``(G, N, ...)`` over the parents of the last node."""
        weights = self.at_last(self.edges.transpose(0, 2, 1))
        return np.asarray(np.einsum("gn,gn...->g...", weights, values) / np.maximum(weights.sum(1), 1)[:, None])


@dataclass(frozen=True)
class PathSums:
    """Mean, largest and smallest sum ``(G, N, Q)`` of Q quantities along the paths from the first node to each node."""

    mean: Array
    """Mean over all paths"""
    maximum: Array
    minimum: Array
    walk: Array
    """Mean over random walks from a node to its parents"""

    @classmethod
    def of(cls, paths: Paths, values: Array) -> PathSums:
        mean, maximum, minimum, walk = (values.copy() for _ in range(4))
        counts = np.zeros(values.shape[:2])
        counts[:, 0] = 1.0
        for node, parents, has_parents in paths.parents():
            shares = parents / np.maximum(parents.sum(1), 1)[:, None]
            counts[:, node] = (parents * counts[:, :node]).sum(1)
            weights = parents * counts[:, :node] / np.maximum(counts[:, node], 1)[:, None]
            mask, reached = parents[..., None] > 0, has_parents[:, None]
            mean[:, node] += np.einsum("gi,giq->gq", weights, mean[:, :node])
            walk[:, node] += np.einsum("gi,giq->gq", shares, walk[:, :node])
            maximum[:, node] += np.where(reached, np.where(mask, maximum[:, :node], -np.inf).max(1), 0)
            minimum[:, node] += np.where(reached, np.where(mask, minimum[:, :node], np.inf).min(1), 0)
        return cls(mean, maximum, minimum, walk)


def subset_statistics(edges: Array, kinds: Array, last: NDArray[np.int64], sets: NDArray[np.bool_]) -> Array:
    """Return six statistics of graphs in topological order for each set of operation types ``(G, 6 S)``.

    They are, for nodes of these types: length of the longest path, inverse length of the shortest path, number of edges
    from the first and to the last node, and mean number of edges into and out of a node.

    Args:
        edges: ``(G, N, N)`` adjacency matrices.
        kinds: ``(G, N, K)`` one-hot operation types; 0 for padding.
        last: ``(G,)`` last node of each graph.
        sets: ``(S, K)`` masks of operation types.
    """
    count, width, _ = kinds.shape
    rows, members = np.arange(count), sets.T.astype(np.float64)
    membership = kinds @ members  # (G, N, S) 1 where a node is of the set
    allowed = membership > 0
    allowed[rows, last] = True
    longest, shortest = np.full(membership.shape, -1e9), np.full(membership.shape, 1e9)
    longest[:, 0] = shortest[:, 0] = 0.0
    for node in range(1, width):
        for parent in range(node):
            mask = (edges[:, parent, node] > 0)[:, None] & allowed[:, node]
            if mask.any():
                np.maximum(longest[:, node], longest[:, parent] + 1, out=longest[:, node], where=mask)
                np.minimum(shortest[:, node], shortest[:, parent] + 1, out=shortest[:, node], where=mask)
    ends = longest[rows, last]
    reached = ends > 0
    in_degree, out_degree = edges.sum(1)[:, :, None] * membership, edges.sum(2)[:, :, None] * membership
    size = np.maximum(membership.sum(1), 1)
    return np.concatenate(
        [
            np.where(reached, ends, 0.0),
            np.where(reached, 1 / np.maximum(shortest[rows, last], 1), 0.0),
            np.einsum("gn,gns->gs", edges[:, 0], membership),
            np.einsum("gn,gns->gs", edges[rows, :, last], membership),
            in_degree.sum(1) / size,
            out_degree.sum(1) / size,
        ],
        1,
    )


CHUNK = 2**18
SETS = {
    "spatial": (0, 3), "pointwise": (1, 3), "convolutions": (0, 1, 3), "pooling": (2, 3), "identity": (3,),
    "spatial and pooling": (0, 2, 3), "pointwise and pooling": (1, 2, 3),
}  # fmt: skip
"""Sets of :data:`CLASSES` that a path may contain, by name."""
_BY = ("longest way by", "shortest way by", "starts with", "ends with", "edges into each", "edges out of each")
_SHARES = ("ways without spatial", "ways without convolutions", "ways without pooling")
_ENDS = ("ends after spatial", "ends after convolutions", "ends at pooling", "ends at spatial", "ends at convolutions")
COSTS = ("log FLOPs", "log parameters", "log activations")
_SUMS = ("sum of", "mean of", "most", "least", "walks' mean of", "ends' most", "ends' least")
FEATURES = (
    *(f"{how} {quantity}" for how in _SUMS for quantity in QUANTITIES),
    "log ways", "operations", "connected", *_SHARES, *_ENDS, *(f"{how} {name}" for how in _BY for name in SETS), *COSTS,
)  # fmt: skip
_REACHES = [index for index, name in enumerate(FEATURES) if name.endswith("receptive field")]


def operation_features(graphs: Graphs) -> Array:
    """Return the features ``(G, F)`` of graphs that :data:`FEATURES` names."""
    if graphs.operations is None:
        raise GraphError(
            "the graphs have no descriptions of their operations; use a reader of a benchmark, or add them with"
            " nas_core.graph.with_operations(graphs, ['input', 'conv3x3', ..])"
        )
    with_operations(graphs, graphs.operations)
    features = np.zeros((len(graphs), len(FEATURES)))
    without_ends = open_ended(graphs)
    for rows, add_ends in ((np.flatnonzero(~without_ends), False), (np.flatnonzero(without_ends), True)):
        chunk = max(1, CHUNK // int(graphs.sizes[rows].max(initial=1)))
        for start in range(0, len(rows), chunk):
            indices = rows[start : start + chunk]
            chunk_graphs, first = graphs.take(indices), len(graphs.operations)
            features[indices] = _features(with_ends(chunk_graphs, first, first + 1) if add_ends else chunk_graphs)
    return features


def _features(graphs: Graphs) -> Array:
    assert graphs.operations is not None
    dense = graphs.dense()
    paths, present = Paths(dense.adjacency, dense.sizes - 1), np.arange(dense.ops.shape[1]) < dense.sizes[:, None]
    quantities = np.array([_quantities(operation) for operation in graphs.operations])
    classes = np.zeros((len(graphs.operations), len(CLASSES)))
    for row, operation in zip(classes, graphs.operations, strict=True):
        if operation.kind != "none":
            row[_class(operation)] = 1.0
    sets = np.array([[index in members for index in range(len(CLASSES))] for members in SETS.values()])
    values, kinds = (table[dense.ops] * present[..., None] for table in (quantities, classes))
    subsets = subset_statistics(dense.adjacency.astype(np.float64), kinds, paths.last, sets)
    features = np.concatenate(
        [*_path_sums(paths, values), *_path_shares(paths, values), subsets, _costs(paths, values)], 1
    )
    features[:, _REACHES] = np.log1p(features[:, _REACHES])  # of one order in cells and in whole networks
    return features


def _path_sums(paths: Paths, values: Array) -> Iterator[Array]:
    number = paths.count(np.ones(values.shape[:2], np.bool_))
    reached, path_sums = number > 0, PathSums.of(paths, values)
    yield values.sum(1)
    yield from (
        np.where(reached[:, None], paths.at_last(sums), 0)
        for sums in (path_sums.mean, path_sums.maximum, path_sums.minimum)
    )
    yield paths.at_last(path_sums.walk)
    yield from (paths.mean_before_last(sums) for sums in (path_sums.maximum, path_sums.minimum))
    yield np.stack([np.log1p(number), (values.sum(-1) > 0).sum(1), reached], 1)


def _path_shares(paths: Paths, values: Array) -> Iterator[Array]:
    number = np.maximum(paths.count(np.ones(values.shape[:2], np.bool_)), 1)
    convolution, spatial, pooling = (
        values[..., QUANTITIES.index(q)] > 0 for q in ("convolutions", "spatial", "pooling")
    )
    yield np.stack([paths.count(~mask) / number for mask in (spatial, convolution, pooling)], 1)
    contains = PathSums.of(paths, np.stack([spatial, convolution], 2).astype(np.float64)).maximum > 0
    yield paths.mean_before_last(
        np.concatenate([contains, np.stack([pooling, spatial, convolution], 2)], 2).astype(np.float64)
    )


def _costs(paths: Paths, values: Array) -> Array:
    # a node has the maximum channels and the minimum resolution of its parents
    channels, edge = np.ones(values.shape[:2]), np.ones(values.shape[:2])
    layers, weights, halvings, doublings = (
        values[..., QUANTITIES.index(q)] for q in ("convolutions", "weights", "halvings", "doublings")
    )
    channels_in = channels.copy()
    for node, parents, has_parents in paths.parents():
        mask = parents > 0
        channels_in[:, node] = np.where(has_parents, np.where(mask, channels[:, :node], 0).max(1), 1)
        channels[:, node] = channels_in[:, node] * 2 ** doublings[:, node]
        finest = np.where(mask, edge[:, :node], np.inf).min(1)
        edge[:, node] = np.where(has_parents, finest, 1) / 2 ** halvings[:, node]
    repeats = np.maximum(layers, 1)
    squares = (channels_in * channels + (repeats - 1) * channels**2) / repeats
    area = edge**2
    costs = [(weights * squares * area).sum(1), (weights * squares).sum(1), (layers * channels * area).sum(1)]
    return np.log(np.stack(costs, 1) + 0.5)
