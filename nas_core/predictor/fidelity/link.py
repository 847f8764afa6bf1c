"""How the values of one fidelity follow from those of the one below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.predictor.targets import SPREAD, TargetScale

__all__ = ["SHARE", "Link"]

Array = NDArray[np.float64]
SHARE = 0.5
"""Share of the slope that is taken for granted; the model learns the rest from the input that it gets."""


@dataclass(frozen=True)
class Link:
    """The scale of a fidelity's values, and how much of them the fidelity below says.

    Values are learned as normal scores by rank, about 0.5. Kennedy and O'Hagan (2000, equation 1) subtract ``slope``
    times the cheaper value and learn the rest; here half of that is subtracted, and the cheaper value is an input
    beside. On validation accuracies of NAS-Bench-101 that ordered better than either alone.
    """

    scale: TargetScale
    slope: float
    """How the score grows with that of the fidelity below, least squares; 0 for the lowest fidelity"""
    middle: float
    """Mean score of the fidelity below over the graphs that it was fitted to"""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.slope) and np.isfinite(self.middle)):
            raise DataError(f"slope {self.slope} and middle {self.middle} of a fidelity; expected finite numbers")

    @classmethod
    def fit(cls, targets: Array, below: Array | None) -> Link:
        """From values ``(G,)`` of graphs.

        Args:
            below: ``(G,)`` scores of the same graphs at the fidelity below, told without having seen them there; None:
                this is the lowest.
        """
        scale = TargetScale.fitted("normal", targets)
        if below is None:
            return cls(scale, 0.0, 0.0)
        middle = float(below.mean())
        apart = below - middle
        across = float(apart @ apart)
        # A slope below 0 comes from few graphs, not from training: longer ones would have to turn the order around.
        slope = max(float(apart @ _score(scale.learn(targets))) / across, 0.0) if across > 0 else 0.0
        return cls(scale, slope, middle)

    def wanted(self, targets: Array, below: Array | None) -> Array:
        """What a model learns of values ``(G,)``."""
        return self.scale.learn(targets) - self._offset(below)

    def score(self, predicted: Array, below: Array | None) -> Array:
        """The normal score ``(B,)`` of what the model says: 0 in the middle, 1 a standard deviation above."""
        return _score(predicted + self._offset(below))

    def values(self, predicted: Array, below: Array) -> Array:
        """What the model says, ``(.., B)``, in the units of the targets."""
        shape = predicted.shape
        return self.scale.restore((predicted + self._offset(below)).reshape(-1)).reshape(shape)

    def spread(self, predicted: Array, spread: Array, below: Array) -> Array:
        """A standard deviation ``(B,)`` of what the model says, in the units of the targets."""
        return (self.values(predicted + spread, below) - self.values(predicted - spread, below)) / 2

    def to_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {"scale": self.scale.to_json(), "slope": self.slope, "middle": self.middle}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Link:
        """The inverse of :meth:`to_json`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        return cls(TargetScale.from_json(data["scale"]), float(data["slope"]), float(data["middle"]))

    def _offset(self, below: Array | None) -> Array | float:
        return 0.0 if below is None else SPREAD * SHARE * self.slope * (below - self.middle)


def _score(learned: Array) -> Array:
    return (learned - 0.5) / SPREAD
