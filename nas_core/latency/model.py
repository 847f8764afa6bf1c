"""What every latency model is: architectures or networks in, milliseconds with their spread out."""

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
    """A model that is fitted to measurements, predicts milliseconds and is kept in one file.

    Two classes follow: :class:`~nas_core.latency.by_genes.base.GeneLatencyModel` reads the architectures of one search
    space, :class:`~nas_core.latency.by_graph.base.GraphLatencyModel` the graphs of any networks.
    """

    name: ClassVar[str]
    """By which it is known in :data:`nas_core.latency.LATENCY_MODELS` and in files."""
    called = "latency model"
    by: ClassVar[str]
    """What it reads: ``genes`` or ``graph``."""
    config: Any
    info: dict[str, Any]
    """Where the model comes from, such as its ``machine``; kept in its file."""

    @property
    def machine(self) -> str:
        """Name of the device whose milliseconds these are."""
        machine = self.info.get("machine")
        return str(machine.get("device_name", UNNAMED)) if isinstance(machine, dict) else UNNAMED

    device: torch.device = torch.device("cpu")
    """Where it learns and predicts, if it does so with torch."""

    def on(self, device: str) -> Self:
        """Learn and predict on that device from now on; models that do not use torch stay on the CPU. It is no part of
        the model's file.

        Raises:
            ConfigError: the device cannot be used here.
        """
        self.device = usable_device(device)
        self.move()
        return self

    def move(self) -> None:
        """Bring what was learned to :attr:`device`."""

    @abstractmethod
    def predict(self, inputs: Any) -> Floats:
        """Milliseconds of architectures or of graphs."""

    @abstractmethod
    def predict_with_spread(self, inputs: Any) -> tuple[Floats, Floats]:
        """Milliseconds, and their standard deviation."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write one file, which :func:`nas_core.latency.load_latency_model` reads."""
