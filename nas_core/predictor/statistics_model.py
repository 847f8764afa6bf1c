"""Gaussian processes and boosted trees on graph statistics as a member of a predictor: graphs in, learned units out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.boosted_trees import BoostedTrees
from nas_core.predictor.gaussian_process import GaussianProcess
from nas_core.predictor.statistics import graph_statistics

__all__ = ["StatisticsModel"]

Array = NDArray[np.float64]
COLUMNS = 0.5
"""Share of the statistics that each process sees (random subspaces, Ho 1998): with a hundred graphs there are more
statistics than a single one can weigh."""
CHUNK = 50_000
"""Graphs predicted at once."""


@dataclass(frozen=True)
class StatisticsModel:
    """What several :class:`GaussianProcess`, each from a random half of the statistics, and several
    :class:`BoostedTrees` learned. The prediction is the mean of both kinds' means."""

    processes: tuple[GaussianProcess, ...]
    columns: tuple[Tensor, ...]
    """Statistics that each of the processes sees"""
    trees: tuple[BoostedTrees, ...]
    operations: int
    """Kinds of operations the training graphs have; all others count as one more."""
    mean: float
    """Of the targets"""
    deviation: float
    """Of the targets"""

    @classmethod
    def fit(cls, graphs: Graphs, targets: Array, processes: int, trees: int, seed: int) -> StatisticsModel:
        """From graphs and targets ``(G,)``.

        Args:
            processes: Gaussian processes; a single one sees all statistics.
            trees: boosted models.

        Raises:
            DataError: all graphs have equal statistics.
            GraphError: nodes do not stand in topological order.
        """
        operations, mean, deviation = int(graphs.ops.max()) + 1, float(targets.mean()), float(targets.std()) or 1.0
        statistics = _statistics(graphs, operations)
        varying = np.flatnonzero(statistics.std(0) > 1e-9)
        if not len(varying):
            raise DataError("all graphs have equal statistics; there is nothing to learn from them")
        stream = np.random.default_rng([seed, 2])
        size = max(1, round(COLUMNS * len(varying))) if processes > 1 else len(varying)
        chosen = [np.sort(stream.permutation(varying)[:size]) for _ in range(processes)]
        wanted = (targets - mean) / deviation
        smooth = tuple(GaussianProcess.fit(statistics[:, c], wanted, seed + i) for i, c in enumerate(chosen))
        boosted = tuple(BoostedTrees.fit(statistics, wanted, seed + i) for i in range(trees))
        return cls(smooth, tuple(torch.from_numpy(c) for c in chosen), boosted, operations, mean, deviation)

    def predict(self, graphs: Graphs) -> Array:
        """``(K, B)`` in the units of the targets it was fitted to: the processes' mean, the trees' mean, as far as it
        has them."""
        chunks = [graphs[start : start + CHUNK] for start in range(0, len(graphs), CHUNK)]
        return self.mean + self.deviation * np.concatenate([self._predicted(chunk) for chunk in chunks], 1)

    def _predicted(self, graphs: Graphs) -> Array:
        statistics = _statistics(graphs, self.operations)
        pairs = zip(self.processes, self.columns, strict=True)
        kinds = ([p.predict(statistics[:, c.numpy()]) for p, c in pairs], [t.predict(statistics) for t in self.trees])
        return np.stack([np.mean(kind, 0) for kind in kinds if kind])

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        named = {"numbers": torch.tensor([self.operations, self.mean, self.deviation], dtype=torch.float64)}
        for i, (process, columns) in enumerate(zip(self.processes, self.columns, strict=True)):
            parts = {"columns": columns, **process.to_tensors()}
            named |= {f"process.{i}.{name}": part for name, part in parts.items()}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], processes: int, trees: int) -> StatisticsModel:
        """Raises:
        KeyError: a tensor is missing.
        DataError: trees that cannot be read.
        """
        operations, mean, deviation = (float(x) for x in tensors["numbers"])
        smooth = tuple(
            GaussianProcess.from_tensors({name: tensors[f"process.{i}.{name}"] for name in GaussianProcess.names()})
            for i in range(processes)
        )
        columns = tuple(tensors[f"process.{i}.columns"] for i in range(processes))
        boosted = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"]) for i in range(trees))
        return cls(smooth, columns, boosted, int(operations), mean, deviation)


def _statistics(graphs: Graphs, operations: int) -> Array:
    known = replace(graphs, ops=np.minimum(graphs.ops, operations).astype(np.int16))
    return graph_statistics(known, operations + 1)
