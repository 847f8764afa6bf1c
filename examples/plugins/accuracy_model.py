"""Example of an accuracy model: ridge regression on counts of operations and edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.predictor import AccuracyModel


@dataclass(frozen=True)
class RidgeConfig:
    """Settings of the regression."""

    strength: float = 1.0
    """Strength of the L2 penalty, above 0."""

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ConfigError(f"strength is {self.strength}; expected a number above 0")


class RidgePredictor(AccuracyModel):
    """Linear model with a weight for each operation and for the number of edges."""

    name = "ridge"
    config_class = RidgeConfig

    def learn(self, graphs: Graphs, targets: np.ndarray, progress: Any, checkpoint: Path | None) -> None:
        columns = _columns(graphs, int(graphs.ops.max()) + 2)
        penalty = self.config.strength * np.eye(columns.shape[1])
        weights = np.linalg.solve(columns.T @ columns + penalty, columns.T @ targets)
        self._weights, self._std = weights, float((targets - columns @ weights).std())

    def estimate(self, graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
        return _columns(graphs, len(self._weights) - 1) @ self._weights, np.full(len(graphs), self._std)

    def header(self) -> dict[str, Any]:
        return {"std": self._std}

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"weights": torch.from_numpy(self._weights)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        self._weights, self._std = tensors["weights"].numpy(), float(header["std"])


def _columns(graphs: Graphs, kinds: int) -> np.ndarray:
    """Return counts of operations per graph, unknown operations last, and the number of edges."""
    index = np.repeat(np.arange(len(graphs)), graphs.sizes) * kinds + np.minimum(graphs.ops, kinds - 1)
    counts = np.bincount(index, minlength=len(graphs) * kinds).reshape(-1, kinds)
    return np.column_stack([counts, graphs.edge_counts]).astype(np.float64)
