"""Predictors on neural graph features (GRAF).

Kadlecova et al., "Surprisingly Strong Performance Prediction with Neural Graph Features", ICML 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.optional import require
from nas_core.predictor.statistics.features import Description, Vocabulary
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.targets import TargetScale

Array = NDArray[np.float64]
MAX_VALUES = 2**22
"""Largest number of values computed at once."""
MEMBERS = 8
"""Number of Gaussian processes and of boosted models, as in the model ``statistics``."""


class Graf:
    """Neural graph features: the count of each operation, and six features of each non-empty set of operations.

    These are the length of the shortest path from input to output through operations of the set only, the largest
    number of operations of the set on one path, the numbers of them next to the input and to the output, and their mean
    in- and out-degree. Operations are nodes; for NAS-Bench-201, the authors use edges. If there is no path, its length
    is the number of nodes.

    Args:
        graphs: training graphs, which define the sets.
        operations: number of kinds of operations.
    """

    def __init__(self, graphs: Graphs, operations: int) -> None:
        self.operations = operations
        last = np.cumsum(graphs.sizes) - 1
        is_inner = np.ones(len(graphs.ops), np.bool_)
        is_inner[last] = is_inner[last - graphs.sizes + 1] = False
        inner_operations = np.unique(graphs.ops[is_inner]).tolist()
        operation_sets = [
            list(operation_set)
            for size in range(1, len(inner_operations) + 1)
            for operation_set in combinations(inner_operations, size)
        ]
        self.sets = np.zeros((operations, len(operation_sets)))
        """``(K, S)``: True if an operation is in a set"""
        for column, operation_set in enumerate(operation_sets):
            self.sets[operation_set, column] = 1

    def __call__(self, graphs: Graphs) -> Array:
        """Return features ``(G, K + 6 S)`` of graphs whose nodes are in topological order, input first."""
        chunk_size = max(1, MAX_VALUES // max(1, int(graphs.sizes.max(initial=1)) * self.sets.shape[1]))
        starts = range(0, len(graphs), chunk_size)
        return np.concatenate(
            [np.concatenate(list(self._feature_blocks(graphs[i : i + chunk_size])), 1) for i in starts]
        )

    def _feature_blocks(self, graphs: Graphs) -> Iterator[Array]:
        dense = graphs.dense()
        edges, sizes, width = dense.adjacency.astype(np.float64), dense.sizes, dense.ops.shape[1]
        present = np.arange(width) < sizes[:, None]
        operations = np.eye(self.operations)[dense.ops] * present[..., None]
        rows, last = np.arange(len(graphs)), sizes - 1
        membership = operations @ self.sets
        yield operations.sum(1)
        yield _shortest_path(edges, membership, rows, last)
        yield _largest_path_count(edges, membership, rows, last)
        yield np.einsum("gn,gns->gs", edges[:, 0], membership)
        yield np.einsum("gn,gns->gs", edges[rows, :, last], membership)
        yield np.einsum("gnm,gns->gs", edges, membership) / sizes[:, None]
        yield np.einsum("gnm,gms->gs", edges, membership) / sizes[:, None]


def _shortest_path(edges: Array, membership: Array, rows: NDArray[np.int64], last: NDArray[np.int64]) -> Array:
    """Return the length ``(G, S)`` of the shortest path through operations of each set only."""
    count, width, sets = membership.shape
    lengths = np.full((count, width, sets), np.inf)
    lengths[:, 0] = 0
    for node in range(1, width):
        previous = np.where(edges[:, :node, node, None] > 0, lengths[:, :node], np.inf).min(1) + 1
        allowed = (membership[:, node] > 0) | (last == node)[:, None]
        lengths[:, node] = np.where(allowed, previous, np.inf)
    ends = lengths[rows, last]
    return np.where(np.isfinite(ends), ends, last[:, None] + 1)


def _largest_path_count(edges: Array, membership: Array, rows: NDArray[np.int64], last: NDArray[np.int64]) -> Array:
    """Return the largest number ``(G, S)`` of each set's operations on one path; 0 without a path."""
    count, width, sets = membership.shape
    counts = np.full((count, width, sets), -np.inf)
    counts[:, 0] = 0
    for node in range(1, width):
        previous = np.where(edges[:, :node, node, None] > 0, counts[:, :node], -np.inf).max(1)
        counts[:, node] = previous + membership[:, node]
    return np.maximum(counts[rows, last], 0)


class Forest:
    """Random forest of scikit-learn with default settings on the features, as in the paper."""

    def __init__(self, operations: int, seed: int) -> None:
        self.operations, self.seed = operations, seed
        self.features: Any = None
        self.model: Any = None

    def fit(self, graphs: Graphs, targets: Array) -> Forest:
        ensemble = require("sklearn.ensemble", "a random forest", "naslib")
        self.features = Graf(graphs, self.operations)
        self.model = ensemble.RandomForestRegressor(random_state=self.seed, n_jobs=1)
        self.model.fit(self.features(graphs), targets)
        return self

    def predict(self, graphs: Graphs) -> Array:
        return np.asarray(self.model.predict(self.features(graphs)))


class ProcessesAndTrees:
    """Mean of Gaussian processes and boosted trees as in the model ``statistics``, on these features only."""

    def __init__(self, operations: int, seed: int) -> None:
        self.operations, self.seed = operations, seed
        self.features: Any = None
        self.scale: Any = None
        self.model: Any = None

    def fit(self, graphs: Graphs, targets: Array) -> ProcessesAndTrees:
        self.features, self.scale = Graf(graphs, self.operations), TargetScale.fit("normal", targets)
        scaled_targets, features = self.scale.transform(targets), self.features(graphs)
        description = Description(Vocabulary.of(graphs))
        self.model = StatisticsModel.fit_statistics(description, features, scaled_targets, MEMBERS, MEMBERS, self.seed)
        return self

    def predict(self, graphs: Graphs) -> Array:
        chunks = [graphs[start : start + 50_000] for start in range(0, len(graphs), 50_000)]
        predictions = [self.model.predict_statistics(self.features(chunk)).mean(0) for chunk in chunks]
        return np.asarray(self.scale.inverse_transform(np.concatenate(predictions)))
