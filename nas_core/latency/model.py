"""Base class of all latency models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.options import Configured

Floats = NDArray[np.float64]
UNNAMED = "an unnamed machine"


class LatencyModel(Configured, ABC):
    """Model that is fitted to measured latencies and predicts latency in ms."""

    name: ClassVar[str]
    """Name in :data:`nas_core.latency.LATENCY_MODELS` and in model files."""
    called = "latency model"
    by: ClassVar[str]
    """Type of inputs: ``genes`` (architectures of one search space) or ``graph`` (any network)."""
    config: Any
    info: dict[str, Any]
    """Provenance of the model, such as ``machine``; saved in the model file."""

    @property
    def machine(self) -> str:
        """Name of the device on which the latencies were measured."""
        machine = self.info.get("machine")
        return str(machine.get("device_name", UNNAMED)) if isinstance(machine, dict) else UNNAMED

    @abstractmethod
    def predict(self, inputs: Any) -> Floats:
        """Return the latency in ms ``(n,)`` of n architectures or graphs."""

    @abstractmethod
    def predict_with_std(self, inputs: Any) -> tuple[Floats, Floats]:
        """Return the latency in ms ``(n,)`` and its standard deviation ``(n,)``."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the file that :func:`nas_core.latency.load_latency_model` reads."""
