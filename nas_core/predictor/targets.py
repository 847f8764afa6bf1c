"""Scaling and validation of targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from nas_core.errors import DataError

SCALES = ("none", "normal", "mean")
UNSCALED = (-1.0, 2.0)  # range of targets that networks can learn without scaling; their initial output is 0.5
DEVIATION = 0.1  # standard deviation of scaled targets, whose mean is 0.5


@dataclass(frozen=True)
class TargetScale:
    """Strictly increasing, piecewise linear map between targets and scaled targets."""

    targets: tuple[float, ...]
    """Ascending points of the map, at least two; empty for the identity"""
    learned: tuple[float, ...]
    """Scaled values of the points, ascending"""

    @classmethod
    def fit(cls, scale: str, targets: NDArray[np.float64]) -> TargetScale:
        """Fit a scale to training targets.

        Args:
            scale: ``none``; ``mean``: linear; ``normal``: ranks as quantiles of a normal distribution.
        """
        low, high = float(targets.min()), float(targets.max())
        if scale == "none" or low == high:
            return cls((), ())
        if scale == "mean":
            mean, deviation = float(targets.mean()), float(targets.std())
            return cls((low, high), tuple(float(0.5 + DEVIATION * (x - mean) / deviation) for x in (low, high)))
        values, first = np.unique(targets, return_index=True)
        from scipy.stats import rankdata  # takes as long to import as torch

        quantiles = ndtri((rankdata(targets)[first] - 0.5) / len(targets))
        return cls(tuple(values.tolist()), tuple((0.5 + DEVIATION * quantiles).tolist()))

    def to_json(self) -> list[list[float]]:
        return [list(self.targets), list(self.learned)]

    @classmethod
    def from_json(cls, sides: Sequence[Sequence[float]]) -> TargetScale:
        return cls(*(tuple(float(x) for x in side) for side in sides))

    def transform(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return _interpolate(targets, self.targets, self.learned)

    def inverse_transform(self, learned: NDArray[np.float64]) -> NDArray[np.float64]:
        return _interpolate(learned, self.learned, self.targets)


IDENTITY = TargetScale((), ())


def _interpolate(values: NDArray[np.float64], x: tuple[float, ...], y: tuple[float, ...]) -> NDArray[np.float64]:
    if not x:
        return values
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    interpolated = np.interp(values, x, y)
    return interpolated + slope * (np.minimum(values - x[0], 0) + np.maximum(values - x[-1], 0))


def checked_targets(
    targets: ArrayLike, graphs: int, positive: bool = False, unscaled: bool = False
) -> NDArray[np.float64]:
    """Return validated targets ``(G,)``.

    Args:
        positive: require values above 0.
        unscaled: require values in the range :data:`UNSCALED`.
    """
    values = np.asarray(targets, np.float64)
    if values.shape != (graphs,):
        raise DataError(f"targets have shape {values.shape} for {graphs} graphs; expected one number per graph")
    if graphs < 2:
        raise DataError(f"got {graphs} graph to fit to; expected at least 2, some hundred for a useful predictor")
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"target {index} is {values[index]}; remove the graphs without a measured value")
    if positive and values.min() <= 0:
        raise DataError(f"target {int(values.argmin())} is {values.min()}; expected latencies above 0")
    if unscaled and len(outside := np.flatnonzero((values < UNSCALED[0]) | (values > UNSCALED[1]))):
        raise DataError(
            f"target {outside[0]} is {values[outside[0]]:g}; with targets='none', expected fractions"
            f" ({UNSCALED[0]:g} to {UNSCALED[1]:g}): divide percent by 100, or give targets='mean' (--set targets=mean)"
        )
    return values
