"""Additive model of graphs: a sum of weights of their operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.artifact import below
from nas_core.predictor.base import AccuracyModel
from nas_core.predictor.mixture import calibration_factor
from nas_core.predictor.progress import Progress
from nas_core.predictor.statistics.features import MAX_LEVELS, level_counts, levels_of, padded
from nas_core.predictor.statistics.regressions import Additive, tensors_of
from nas_core.predictor.targets import IDENTITY

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """Columns that count operations of graphs: by operation index, then by operation index and attribute value."""

    kinds: NDArray[np.int64]
    """``(K,)`` ascending operation indices of the training graphs; all others are counted together"""
    levels: tuple[NDArray[np.float32], ...]
    """Counted values of each attribute; without attributes, of the node index if all graphs have one size"""

    @classmethod
    def of(cls, graphs: Graphs) -> Counts:
        kinds = np.unique(graphs.ops).astype(np.int64)
        sizes = np.unique(graphs.sizes)
        if graphs.attributes is not None:
            return cls(kinds, tuple(levels_of(graphs.attributes, len(kinds) + 1)))
        indexed = len(sizes) == 1 and sizes[0] <= MAX_LEVELS
        return cls(kinds, (np.arange(sizes[0], dtype=np.float32),) if indexed else ())

    @property
    def kind_columns(self) -> int:
        """Number of columns that count by operation index only."""
        return len(self.kinds) + 1

    def describe(self, graphs: Graphs) -> Array:
        """Return counts ``(G, F)``."""
        chunks = [np.concatenate(list(self._blocks(graphs[i : i + 20_000])), 1) for i in range(0, len(graphs), 20_000)]
        return np.concatenate(chunks)

    def _blocks(self, graphs: Graphs) -> Iterator[Array]:
        dense = graphs.dense()
        count, width = dense.ops.shape
        index = np.minimum(np.searchsorted(self.kinds, dense.ops), len(self.kinds) - 1)
        kinds = np.eye(self.kind_columns)[np.where(self.kinds[index] == dense.ops, index, len(self.kinds))]
        kinds *= (np.arange(width) < dense.sizes[:, None])[..., None]
        yield kinds.sum(1)
        if graphs.attributes is not None:
            columns = padded(graphs, graphs.attributes, width)
        else:
            columns = np.broadcast_to(np.arange(width, dtype=np.float64)[:, None], (count, width, 1))
        yield from (level_counts(columns[..., i], kinds, levels) for i, levels in enumerate(self.levels) if len(levels))

    def to_tensors(self) -> dict[str, Tensor]:
        levels = {f"levels.{i}": torch.from_numpy(values) for i, values in enumerate(self.levels)}
        return {"kinds": torch.from_numpy(self.kinds), **levels}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Counts:
        levels = below("levels.", tensors)
        return cls(tensors["kinds"].numpy(), tuple(levels[str(i)].numpy() for i in range(len(levels))))


class AdditivePredictor(AccuracyModel):
    """Sum of a weight per operation, for latencies and at least ten graphs; fits in milliseconds."""

    name = "additive"
    _model: Additive
    _counts: Counts
    _deviation: float

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        counts = Counts.of(graphs)
        columns = counts.describe(graphs)
        if not columns.std(0).any():
            raise DataError("all graphs have the same operations; give graphs that differ")
        model, leave_one_out = Additive.fit(columns, targets, IDENTITY, counts.kind_columns)
        self._model, self._counts = model, counts
        self._deviation = calibration_factor(np.abs(targets - leave_one_out) / self._units(leave_one_out))

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        predicted = self._model.predict(self._counts.describe(graphs))
        return predicted, self._deviation * self._units(predicted)

    def _units(self, predicted: Array) -> Array:
        # errors of positive targets are relative
        return predicted if float(self._model.least) > 0 else np.ones(len(predicted))

    def header(self) -> dict[str, Any]:
        return {"deviation": self._deviation}

    def tensors(self) -> dict[str, Tensor]:
        model = {f"model.{name}": tensor for name, tensor in tensors_of(self._model).items()}
        return {**self._counts.to_tensors(), **model}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._deviation = float(header["deviation"])
        self._model, self._counts = Additive(**below("model.", tensors)), Counts.from_tensors(tensors)
