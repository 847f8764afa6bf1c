"""Example of a latency model by genes: a linear model of log latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nas_core.errors import ConfigError
from nas_core.latency import GeneLatencyModel


@dataclass(frozen=True)
class LogLinearConfig:
    """Settings of the regression."""

    strength: float = 1e-3
    """Strength of the L2 penalty, above 0."""

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ConfigError(f"strength is {self.strength}; expected a number above 0")


class LogLinearModel(GeneLatencyModel):
    """Ridge regression of log latency on genes averaged over layers."""

    name = "log-linear"
    config_class = LogLinearConfig

    def learn(self, inputs: np.ndarray, latency_ms: np.ndarray) -> np.ndarray:
        columns, held_out = self._columns(inputs), np.arange(len(inputs)) % 5 == 0
        held_out_weights = self._weights_of(columns[~held_out], latency_ms[~held_out])
        self._weights = self._weights_of(columns, latency_ms)
        return latency_ms[held_out] / np.exp(columns[held_out] @ held_out_weights)

    def estimate(self, inputs: np.ndarray) -> np.ndarray:
        return np.exp(self._columns(inputs) @ self._weights)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"strength": self.config.strength}, {"weights": self._weights}

    def restore(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.config, self._weights = LogLinearConfig(**settings), arrays["weights"]

    def _columns(self, inputs: np.ndarray) -> np.ndarray:
        summary = self.space.encode_rows(inputs, "summary") if self.source == "rows" else inputs
        return np.column_stack([summary, np.ones(len(summary))]).astype(np.float64)

    def _weights_of(self, columns: np.ndarray, latency_ms: np.ndarray) -> np.ndarray:
        penalty = self.config.strength * np.eye(columns.shape[1])
        return np.linalg.solve(columns.T @ columns + penalty, columns.T @ np.log(latency_ms))
