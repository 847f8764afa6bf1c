"""Gaussian processes and boosted trees on graph statistics as a member of a predictor: graphs in, learned units out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.statistics.boosted_trees import BoostedTrees
from nas_core.predictor.statistics.features import graph_statistics, graphs_at_once, statistics_count
from nas_core.predictor.statistics.gaussian_process import GaussianProcess

__all__ = ["StatisticsModel"]

Array = NDArray[np.float64]
COLUMNS = 0.5
"""Share of the statistics that each process sees (random subspaces, Ho 1998): with a hundred graphs there are more
statistics than a single one can weigh."""
CHUNK = 50_000
"""Graphs predicted at once, fewer where there are many kinds of operations."""
FEW = 8
"""Up to this index + 1 all operations count as kinds, also those that no training graph has."""


@dataclass(frozen=True)
class StatisticsModel:
    """What several :class:`GaussianProcess`, each from a random half of the statistics, and several
    :class:`BoostedTrees` learned. The prediction is the mean of both kinds' means. Operations and edges are seen, no
    attributes, shapes or static features."""

    processes: tuple[GaussianProcess, ...]
    columns: tuple[Tensor, ...]
    """Statistics that each of the processes sees"""
    trees: tuple[BoostedTrees, ...]
    kinds: Tensor
    """``(K,)`` ascending operation indices that count as kinds: those of the training graphs, or all below the largest
    where they are few. All others count as one more kind."""
    mean: float
    """Mean of the targets."""
    deviation: float
    """Standard deviation of the targets."""

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
        kinds, mean, deviation = _kinds(graphs.ops), float(targets.mean()), float(targets.std()) or 1.0
        statistics = _statistics(graphs, kinds)
        varying = np.flatnonzero(statistics.std(0) > 1e-9)
        if not len(varying):
            raise DataError("all graphs have equal statistics; there is nothing to learn from them")
        stream = np.random.default_rng([seed, 2])
        size = max(1, round(COLUMNS * len(varying))) if processes > 1 else len(varying)
        chosen = [np.sort(stream.permutation(varying)[:size]) for _ in range(processes)]
        wanted = (targets - mean) / deviation
        smooth = tuple(GaussianProcess.fit(statistics[:, c], wanted, seed + i) for i, c in enumerate(chosen))
        boosted = tuple(BoostedTrees.fit(statistics, wanted, seed + i) for i in range(trees))
        return cls(smooth, tuple(torch.from_numpy(c) for c in chosen), boosted, kinds, mean, deviation)

    def predict(self, graphs: Graphs, apart: bool = False) -> Array:
        """``(K, B)`` in the units of the targets it was fitted to: the processes' mean, the trees' mean, as far as it
        has them.

        Args:
            apart: give each process and each of the boosted models, ``(processes + trees, B)``.
        """
        chunk = graphs_at_once(len(self.kinds) + 1, CHUNK)
        chunks = [graphs[start : start + chunk] for start in range(0, len(graphs), chunk)]
        return self.mean + self.deviation * np.concatenate([self._predicted(part, apart) for part in chunks], 1)

    def _predicted(self, graphs: Graphs, apart: bool) -> Array:
        statistics = _statistics(graphs, self.kinds)
        pairs = zip(self.processes, self.columns, strict=True)
        kinds = ([p.predict(statistics[:, c.numpy()]) for p, c in pairs], [t.predict(statistics) for t in self.trees])
        return np.stack([row for kind in kinds if kind for row in (kind if apart else [np.mean(kind, 0)])])

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        numbers = torch.tensor([len(self.kinds), self.mean, self.deviation], dtype=torch.float64)
        named = {"numbers": numbers, "kinds": self.kinds}
        for i, (process, columns) in enumerate(zip(self.processes, self.columns, strict=True)):
            parts = {"columns": columns, **process.to_tensors()}
            named |= {f"process.{i}.{name}": part for name, part in parts.items()}
        return named | {f"trees.{i}": trees.to_tensor() for i, trees in enumerate(self.trees)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], processes: int, trees: int) -> StatisticsModel:
        """The model of such tensors, the inverse of :meth:`to_tensors`.

        Raises:
            KeyError: a tensor is missing.
            DataError: trees that cannot be read, or tensors that do not fit together.
        """
        operations, mean, deviation = (float(x) for x in tensors["numbers"])
        kinds = tensors["kinds"] if "kinds" in tensors else torch.arange(int(operations))  # absent in the first files
        smooth = tuple(
            GaussianProcess.from_tensors({name: tensors[f"process.{i}.{name}"] for name in GaussianProcess.names()})
            for i in range(processes)
        )
        columns = tuple(tensors[f"process.{i}.columns"] for i in range(processes))
        if kinds.dtype != torch.int64 or kinds.ndim != 1 or not len(kinds) or len(kinds) > 2**15:
            raise DataError(
                f"kinds of operations are {kinds.dtype} of shape {tuple(kinds.shape)}; expected some indices"
            )
        width = statistics_count(len(kinds) + 1)
        fit = all(
            c.dtype == torch.int64 and len(c) == len(p.mean) and int(c.min()) >= 0 and int(c.max()) < width
            for c, p in zip(columns, smooth, strict=True)
        )
        if not fit:
            raise DataError(f"processes read other columns than the {width} statistics")
        if not (math.isfinite(mean) and math.isfinite(deviation)) or bool((kinds.diff() <= 0).any()):
            raise DataError("mean or deviation is no number, or the kinds of operations do not ascend")
        boosted = tuple(BoostedTrees.from_tensor(tensors[f"trees.{i}"], width) for i in range(trees))
        return cls(smooth, columns, boosted, kinds, mean, deviation)


def _kinds(ops: NDArray[np.int16]) -> Tensor:
    """Which operation indices count as kinds of their own."""
    below = int(ops.max()) + 1
    return torch.arange(below) if below <= FEW else torch.from_numpy(np.unique(ops).astype(np.int64))


def _statistics(graphs: Graphs, kinds: Tensor) -> Array:
    known = kinds.numpy()
    place = np.minimum(np.searchsorted(known, graphs.ops), len(known) - 1)
    ops = np.where(known[place] == graphs.ops, place, len(known)).astype(np.int16)
    return graph_statistics(replace(graphs, ops=ops), len(known) + 1)
