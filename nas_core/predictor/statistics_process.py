"""Gaussian processes on graph statistics as a member of a predictor: graphs in, learned units out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.gaussian_process import GaussianProcess
from nas_core.predictor.statistics import graph_statistics

__all__ = ["StatisticsProcess"]

COLUMNS = 0.5
"""Share of the statistics that each process sees (random subspaces, Ho 1998): with a hundred graphs there are more
statistics than a single one can weigh."""


@dataclass(frozen=True)
class StatisticsProcess:
    """What several :class:`GaussianProcess` learned from random halves of the statistics; their mean predicts."""

    processes: tuple[GaussianProcess, ...]
    columns: tuple[Tensor, ...]
    """Statistics that each of them sees"""
    operations: int
    """Kinds of operations the training graphs have; all others count as one more."""
    mean: float
    """Of the targets"""
    deviation: float
    """Of the targets"""

    @classmethod
    def fit(cls, graphs: Graphs, targets: NDArray[np.float64], count: int, seed: int) -> StatisticsProcess:
        """Raises:
        DataError: all graphs have equal statistics.
        GraphError: nodes do not stand in topological order.
        """
        operations, mean, deviation = int(graphs.ops.max()) + 1, float(targets.mean()), float(targets.std()) or 1.0
        statistics = _statistics(graphs, operations)
        varying = np.flatnonzero(statistics.std(0) > 1e-9)
        if not len(varying):
            raise DataError("all graphs have equal statistics; there is nothing to learn from them")
        stream = np.random.default_rng([seed, 2])
        size = max(1, round(COLUMNS * len(varying))) if count > 1 else len(varying)
        chosen = [np.sort(stream.permutation(varying)[:size]) for _ in range(count)]
        wanted = (targets - mean) / deviation
        processes = tuple(GaussianProcess.fit(statistics[:, c], wanted, seed + i) for i, c in enumerate(chosen))
        return cls(processes, tuple(torch.from_numpy(c) for c in chosen), operations, mean, deviation)

    def predict(self, graphs: Graphs) -> NDArray[np.float64]:
        """``(B,)`` in the units of the targets it was fitted to."""
        statistics = _statistics(graphs, self.operations)
        pairs = zip(self.processes, self.columns, strict=True)
        expected: NDArray[np.float64] = np.mean([p.predict(statistics[:, c.numpy()]) for p, c in pairs], 0)
        return self.mean + self.deviation * expected

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        named = {"numbers": torch.tensor([self.operations, self.mean, self.deviation], dtype=torch.float64)}
        for i, (process, columns) in enumerate(zip(self.processes, self.columns, strict=True)):
            named |= {f"{i}.columns": columns, **{f"{i}.{name}": x for name, x in process.to_tensors().items()}}
        return named

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> StatisticsProcess:
        operations, mean, deviation = (float(x) for x in tensors["numbers"])
        count = 1 + max(int(name.partition(".")[0]) for name in tensors if name != "numbers")
        parts = [{k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{i}.")} for i in range(count)]
        columns = tuple(part.pop("columns") for part in parts)
        return cls(tuple(map(GaussianProcess.from_tensors, parts)), columns, int(operations), mean, deviation)


def _statistics(graphs: Graphs, operations: int) -> NDArray[np.float64]:
    known = replace(graphs, ops=np.minimum(graphs.ops, operations).astype(np.int16))
    return graph_statistics(known, operations + 1)
