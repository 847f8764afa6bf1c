"""Features of networks that mean the same in every search space: made of what operations do, not of their indices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import GraphError, Graphs, Operation, described, open_ended, with_ends
from nas_core.predictor.statistics.features import subset_statistics

Array = NDArray[np.float64]
CHANNELS = 32
"""That a layer is taken to have, where depth-wise convolutions are weighed against those of all channels."""
QUANTITIES = (
    "convolutions", "weights", "receptive field", "spatial", "pooling", "identities", "average pooling", "halvings",
    "doublings",
)  # fmt: skip
"""Weights are in squares of the channels; the receptive field is what a layer adds to it, at its own resolution;
halvings are of the resolution, doublings of the channels."""
CLASSES = ("spatial", "pointwise", "pooling", "identity")


def quantities_of(operations: tuple[Operation, ...]) -> Array:
    """``(O, Q)`` for each operation its :data:`QUANTITIES`."""
    return np.array([_quantities(operation) for operation in operations])


def classes_of(operations: tuple[Operation, ...]) -> Array:
    """``(O, 4)``: 1 for the class of :data:`CLASSES` that an operation is of; what gives zeros is of none."""
    table = np.zeros((len(operations), len(CLASSES)))
    for row, operation in zip(table, operations, strict=True):
        if operation.kind != "none":
            row[_class(operation)] = 1.0
    return table


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


CHUNK = 2**18
"""Nodes that are padded and described at once."""
SETS = {
    "spatial": (0, 3), "pointwise": (1, 3), "convolutions": (0, 1, 3), "pooling": (2, 3), "identity": (3,),
    "spatial and pooling": (0, 2, 3), "pointwise and pooling": (1, 2, 3),
}  # fmt: skip
"""Classes of operations that a way may meet, by name."""
_BY = ("longest way by", "shortest way by", "starts with", "ends with", "edges into each", "edges out of each")
_SHARES = ("ways without spatial", "ways without convolutions", "ways without pooling")
_ENDS = ("ends after spatial", "ends after convolutions", "ends at pooling", "ends at spatial", "ends at convolutions")
COSTS = ("log FLOPs", "log parameters", "log activations")
_ALONG = ("sum of", "mean of", "most", "least", "walks' mean of", "ends' most", "ends' least")
FEATURES = (
    *(f"{how} {quantity}" for how in _ALONG for quantity in QUANTITIES),
    "log ways", "operations", "connected", *_SHARES, *_ENDS, *(f"{how} {name}" for how in _BY for name in SETS), *COSTS,
)  # fmt: skip
"""Names of the columns."""
_REACHES = [index for index, name in enumerate(FEATURES) if name.endswith("receptive field")]


def operation_features(graphs: Graphs) -> Array:
    """``(G, F)`` numbers of each graph by the names of :data:`FEATURES`.

    Raises:
        GraphError: nothing says what the operations do, or too few are described.
    """
    if graphs.operations is None:
        raise GraphError(
            "nothing says what the operations of these graphs do; readers of benchmarks do, and"
            " nas_core.graph.described(graphs, ['input', 'conv3x3', ..]) for graphs of your own"
        )
    described(graphs, graphs.operations)
    found = np.zeros((len(graphs), len(FEATURES)))
    apart = open_ended(graphs)
    for rows, whole in ((np.flatnonzero(~apart), False), (np.flatnonzero(apart), True)):
        at_once = max(1, CHUNK // int(graphs.sizes[rows].max(initial=1)))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            part, first = graphs.take(some), len(graphs.operations)
            found[some] = _features(with_ends(part, first, first + 1) if whole else part)
    return found


def _features(graphs: Graphs) -> Array:
    assert graphs.operations is not None
    dense = graphs.dense()
    ways, present = Ways(dense.adjacency, dense.sizes - 1), np.arange(dense.ops.shape[1]) < dense.sizes[:, None]
    values = quantities_of(graphs.operations)[dense.ops] * present[..., None]
    classes = classes_of(graphs.operations)[dense.ops] * present[..., None]
    parts = [*_along(ways, values), *_shares(ways, values), _subsets(ways, classes)]
    parts.append(_costs(ways, values))
    found = np.concatenate(parts, 1)
    found[:, _REACHES] = np.log1p(found[:, _REACHES])  # of one order in cells and in whole networks
    return found


def _along(ways: Ways, values: Array) -> Iterator[Array]:
    number = ways.count(np.ones(values.shape[:2], np.bool_))
    reached, along = number > 0, Along.of(ways, values)
    yield values.sum(1)
    yield from (np.where(reached[:, None], ways.at_last(each), 0) for each in (along.mean, along.most, along.least))
    yield ways.at_last(along.walk)
    yield from (ways.of_last(each) for each in (along.most, along.least))
    yield np.stack([np.log1p(number), (values.sum(-1) > 0).sum(1), reached], 1)


def _shares(ways: Ways, values: Array) -> Iterator[Array]:
    number = np.maximum(ways.count(np.ones(values.shape[:2], np.bool_)), 1)
    convolution, spatial, pooling = (
        values[..., QUANTITIES.index(q)] > 0 for q in ("convolutions", "spatial", "pooling")
    )
    yield np.stack([ways.count(~which) / number for which in (spatial, convolution, pooling)], 1)
    most = Along.of(ways, np.stack([spatial, convolution], 2).astype(np.float64)).most > 0
    yield ways.of_last(np.concatenate([most, np.stack([pooling, spatial, convolution], 2)], 2).astype(np.float64))


def _subsets(ways: Ways, classes: Array) -> Array:
    sets = np.zeros((len(SETS), len(CLASSES)), np.bool_)
    for row, members in zip(sets, SETS.values(), strict=True):
        row[list(members)] = True
    return subset_statistics(ways.edges.astype(np.float64), classes, ways.last, sets)


def _costs(ways: Ways, values: Array) -> Array:
    """Logarithms of :data:`COSTS`, in those of a layer without weights that grow: each node takes the widest and
    smallest of what its parents give."""
    channels, edge = np.ones(values.shape[:2]), np.ones(values.shape[:2])
    layers, weights, halvings, doublings = (
        values[..., QUANTITIES.index(q)] for q in ("convolutions", "weights", "halvings", "doublings")
    )
    taken = channels.copy()
    for node, parents, any_ in ways.parents():
        here = parents > 0
        taken[:, node] = np.where(any_, np.where(here, channels[:, :node], 0).max(1), 1)
        channels[:, node] = taken[:, node] * 2 ** doublings[:, node]
        finest = np.where(here, edge[:, :node], np.inf).min(1)
        edge[:, node] = np.where(any_, finest, 1) / 2 ** halvings[:, node]
    several = np.maximum(layers, 1)
    squares = (taken * channels + (several - 1) * channels**2) / several
    area = edge**2
    costs = [(weights * squares * area).sum(1), (weights * squares).sum(1), (layers * channels * area).sum(1)]
    return np.log(np.stack(costs, 1) + 0.5)
