"""Example of a latency model by graph: latency as a power of FLOPs and memory access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs
from nas_core.latency import GraphLatencyModel
from nas_core.latency.by_graph.data import NetworkLatencies


@dataclass(frozen=True)
class PowerLawConfig:
    """Settings of the regression."""

    strength: float = 1e-3
    """Strength of the L2 penalty on the exponents, above 0."""

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ConfigError(f"strength is {self.strength}; expected a number above 0")


class PowerLawModel(GraphLatencyModel):
    """``ms = constant * GFLOPs^a * parameters^b * access^c``."""

    name = "power-law"
    reads: ClassVar[tuple[str, ...]] = ("static",)
    config_class = PowerLawConfig

    def learn(self, data: NetworkLatencies, seed: int, progress: Any) -> None:
        columns = _columns(data.graphs)
        penalty = self.config.strength * np.eye(columns.shape[1])
        self._weights = np.linalg.solve(columns.T @ columns + penalty, columns.T @ np.log(data.latency_ms))

    def estimate(self, graphs: Graphs) -> tuple[np.ndarray, None]:
        return np.exp(_columns(graphs) @ self._weights), None

    def tensors(self) -> dict[str, torch.Tensor]:
        return {"weights": torch.from_numpy(self._weights)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        self._weights = tensors["weights"].numpy()
        if self._weights.shape != (4,):
            raise DataError(f"the weights have shape {self._weights.shape}; expected (4,)")


def _columns(graphs: Graphs) -> np.ndarray:
    """Return log GFLOPs, log parameters, log memory access and a constant, of shape (graphs, 4)."""
    static = np.maximum(np.asarray(graphs.static, np.float64)[:, 1:], 1e-9)
    return np.column_stack([np.log(static), np.ones(len(static))])
