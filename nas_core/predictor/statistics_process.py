"""A Gaussian process on graph statistics as a member of a predictor: graphs in, learned units out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.predictor.gaussian_process import GaussianProcess
from nas_core.predictor.statistics import graph_statistics

__all__ = ["StatisticsProcess"]


@dataclass(frozen=True)
class StatisticsProcess:
    """What :class:`GaussianProcess` learned, with the way from graphs to its statistics."""

    process: GaussianProcess
    operations: int
    """Kinds of operations the training graphs have; all others count as one more."""
    mean: float
    """Of the targets"""
    deviation: float
    """Of the targets"""

    @classmethod
    def fit(cls, graphs: Graphs, targets: NDArray[np.float64], seed: int) -> StatisticsProcess:
        """Raises:
        DataError: all graphs have equal statistics.
        GraphError: nodes do not stand in topological order.
        """
        operations, mean, deviation = int(graphs.ops.max()) + 1, float(targets.mean()), float(targets.std()) or 1.0
        process = GaussianProcess.fit(_statistics(graphs, operations), (targets - mean) / deviation, seed)
        return cls(process, operations, mean, deviation)

    def predict(self, graphs: Graphs) -> NDArray[np.float64]:
        """``(B,)`` in the units of the targets it was fitted to."""
        return self.mean + self.deviation * self.process.predict(_statistics(graphs, self.operations))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        numbers = torch.tensor([self.operations, self.mean, self.deviation], dtype=torch.float64)
        return {"numbers": numbers, **self.process.to_tensors()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> StatisticsProcess:
        operations, mean, deviation = (float(x) for x in tensors["numbers"])
        return cls(GaussianProcess.from_tensors(tensors), int(operations), mean, deviation)


def _statistics(graphs: Graphs, operations: int) -> NDArray[np.float64]:
    known = replace(graphs, ops=np.minimum(graphs.ops, operations).astype(np.int16))
    return graph_statistics(known, operations + 1)
