"""What a calibration learns from trained networks: its parts, how much each counts, and how far off they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas_core.predictor.mixture import Mixture
from nas_core.predictor.targets import TargetScale
from nas_core.search.calibration.parts import Parts

Array = NDArray[np.float64]
FEWEST = 3
"""Trained networks without which nothing is fitted; none at all is allowed too."""


@dataclass(frozen=True)
class Learned:
    """What a calibration learned, and from what."""

    parts: Parts
    mixture: Mixture
    scale: TargetScale
    """Between what is mixed and the targets, of which larger ones are better"""
    inherited: Array
    """``(n, S)`` of the trained networks, of which larger ones are better"""
    sizes: Array
    """``(n, C)``"""

    @classmethod
    def of(cls, inherited: Array, sizes: Array, targets: Array) -> Learned:
        """From trained networks; weights of the parts and the spread from what parts say of networks left out."""
        scale = TargetScale.fitted("mean", targets)
        held_out = scale.learn(Parts.left_out(inherited, sizes, targets))
        learned = scale.learn(targets)
        squares = ((held_out - learned) ** 2).sum(1)
        inverse = 1 / np.maximum(squares + FEWEST * squares.mean() / len(targets), 1e-12)
        mixture = Mixture.fit(held_out, learned, targets, scale, (inverse / inverse.sum()).tolist())
        return cls(Parts.fit(inherited, sizes, targets), mixture, scale, inherited, sizes)

    def rows(self, inherited: Array, sizes: Array) -> Array:
        """``(3, B)`` what the parts say, in the units that are mixed."""
        return self.scale.learn(self.parts.predict(inherited, sizes))

    def estimate(self, inherited: Array, sizes: Array) -> tuple[Array, Array]:
        """``(B,)`` estimates and ``(B,)`` their deviations."""
        return self.mixture.combine(self.rows(inherited, sizes), self.scale)
