"""Base class of all latency models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from nas_core.device import usable_device
from nas_core.options import Configured

Floats = NDArray[np.float64]
UNNAMED = "an unnamed machine"


class LatencyModel(Configured, ABC):
    """Model that is fitted to measurements and predicts milliseconds."""

    name: ClassVar[str]
    """Name in :data:`nas_core.latency.LATENCY_MODELS` and in files."""
    called = "latency model"
    by: ClassVar[str]
    """Inputs: ``genes`` or ``graph``."""
    config: Any
    info: dict[str, Any]
    """Provenance, such as ``machine``; saved with the model."""

    @property
    def machine(self) -> str:
        """Return the name of the measured device."""
        machine = self.info.get("machine")
        return str(machine.get("device_name", UNNAMED)) if isinstance(machine, dict) else UNNAMED

    device: torch.device = torch.device("cpu")
    """Device of torch for fit and prediction; not saved."""

    def on(self, device: str) -> Self:
        """Move the model to a device; models without torch stay on the CPU."""
        self.device = usable_device(device)
        self.move()
        return self

    def move(self) -> None:
        """Move the fitted state to :attr:`device`."""

    @abstractmethod
    def predict(self, inputs: Any) -> Floats:
        """Return milliseconds of architectures or graphs."""

    @abstractmethod
    def predict_with_std(self, inputs: Any) -> tuple[Floats, Floats]:
        """Return milliseconds and their standard deviation."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write one file for :func:`nas_core.latency.load_latency_model`."""
