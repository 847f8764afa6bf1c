"""What every latency model is: architectures or networks in, milliseconds with their spread out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.settings import NoSettings, setting_types

__all__ = ["Floats", "LatencyModel"]

Floats = NDArray[np.float64]


class LatencyModel(ABC):
    """A model that is fitted to measurements, predicts milliseconds and is kept in one file.

    Two classes follow: :class:`~nas_core.latency.by_genes.base.GeneLatencyModel` reads the architectures of one search
    space, :class:`~nas_core.latency.by_graph.base.GraphLatencyModel` the graphs of any networks.
    """

    name: ClassVar[str]
    """By which it is known in :data:`nas_core.latency.LATENCY_MODELS` and in files."""
    by: ClassVar[str]
    """What it reads: ``genes`` or ``graph``."""
    config_class: ClassVar[type] = NoSettings
    """A frozen dataclass of its settings."""
    config: Any
    info: dict[str, Any]
    """Where the model comes from, such as its ``machine``; kept in its file."""

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        """Settings by name and their types."""
        return setting_types(cls.config_class)

    @classmethod
    def check_settings(cls, names: Iterable[str]) -> None:
        """Refuse settings that the model does not have.

        Raises:
            ConfigError: there is one; the message lists those it has.
        """
        known = cls.setting_types()
        if unknown := set(names) - known.keys():
            raise ConfigError(
                f"latency model {cls.name!r} has no setting {', '.join(sorted(unknown))}; it has:"
                f" {', '.join(known) or 'none'}"
            )

    @abstractmethod
    def predict(self, inputs: Any) -> Floats:
        """Milliseconds of architectures or of graphs."""

    @abstractmethod
    def predict_with_spread(self, inputs: Any) -> tuple[Floats, Floats]:
        """Milliseconds, and their standard deviation."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write one file, which :func:`nas_core.latency.load_latency_model` reads."""
