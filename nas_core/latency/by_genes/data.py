"""Measurements in the form that models are fitted to, wherever they come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.fingerprints import fingerprint
from nas_core.space import SearchSpace


@dataclass(frozen=True)
class LatencyData:
    """n measurements of architectures of one space."""

    space: SearchSpace
    source: str
    """What ``inputs`` are: ``rows`` (option indices) or ``summary`` (averages, as in HAT's tables)."""
    inputs: NDArray[Any]
    """``(n, slots)`` or ``(n, choices)``."""
    latency_ms: NDArray[np.float64]
    """``(n,)``; drift divided out if a reference was measured beside."""
    order: NDArray[np.float64]
    """``(n,)`` place in the measurement order."""
    referenced: bool
    """Whether a reference workload was interleaved."""
    info: dict[str, Any] = field(default_factory=dict)
    """``machine``, ``settings`` and ``reference_ms`` of the collection, as far as known."""

    def __len__(self) -> int:
        return len(self.latency_ms)

    def take(self, index: NDArray[Any]) -> LatencyData:
        """The rows ``index``."""
        return replace(self, inputs=self.inputs[index], latency_ms=self.latency_ms[index], order=self.order[index])

    def fingerprints(self) -> list[str]:
        """One fingerprint for each row's inputs, by which a model knows later what it has learned."""
        return [fingerprint(row) for row in self.inputs]

    def scaled(self, factor: float) -> LatencyData:
        """All latencies times ``factor``: the same measurements in another state of the machine."""
        return replace(self, latency_ms=self.latency_ms * factor)
