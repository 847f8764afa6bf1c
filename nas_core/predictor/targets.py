"""Targets as a network learns them, and predictions back in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError, DataError, unknown_choice

SCALES = ("none", "normal", "mean")
UNSCALED = (-1.0, 2.0)
"""Range of targets that networks learn as they are: their output starts at 0.5 and moves by some tenths."""
SPREAD = 0.1
"""Standard deviation of transformed targets, about 0.5: the range in which accuracies lie."""


@dataclass(frozen=True)
class TargetScale:
    """A strictly increasing map between targets and what is learned, with straight ends."""

    targets: tuple[float, ...]
    """Ascending, at least two; empty: both are the same"""
    learned: tuple[float, ...]
    """Values that were learned for them, as many and ascending"""

    @classmethod
    def fitted(cls, scale: str, targets: NDArray[np.float64]) -> TargetScale:
        """From training targets.

        Args:
            scale: ``none``; ``mean``: shifted and scaled linearly; ``normal``: ranks as quantiles of a normal
                distribution, so that a few failed networks do not rule a squared error.
        """
        check_scale(scale)
        low, high = float(targets.min()), float(targets.max())
        if scale == "none" or low == high:
            return cls((), ())
        if scale == "mean":
            mean, deviation = float(targets.mean()), float(targets.std())
            return cls((low, high), tuple(float(0.5 + SPREAD * (x - mean) / deviation) for x in (low, high)))
        values, first = np.unique(targets, return_index=True)
        from scipy.stats import rankdata  # takes as long to import as torch

        quantiles = ndtri((rankdata(targets)[first] - 0.5) / len(targets))
        return cls(tuple(values.tolist()), tuple((0.5 + SPREAD * quantiles).tolist()))

    def to_json(self) -> list[list[float]]:
        """The points of both sides."""
        return [list(self.targets), list(self.learned)]

    @classmethod
    def from_json(cls, sides: Sequence[Sequence[float]]) -> TargetScale:
        """The inverse of :meth:`to_json`."""
        return cls(*(tuple(float(x) for x in side) for side in sides))

    def learn(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        return _through(targets, self.targets, self.learned)

    def restore(self, learned: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions in the units of the targets; their order is kept."""
        return _through(learned, self.learned, self.targets)


def _through(values: NDArray[np.float64], x: tuple[float, ...], y: tuple[float, ...]) -> NDArray[np.float64]:
    """Straight lines between the points; beyond them the slope of all of them."""
    if not x:
        return values
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    inside = np.interp(values, x, y)
    return inside + slope * (np.minimum(values - x[0], 0) + np.maximum(values - x[-1], 0))


def check_scale(scale: str) -> None:
    """Refuse the name of a scale that does not exist.

    Raises:
        UnknownChoiceError: it is one.
    """
    if scale not in SCALES:
        raise unknown_choice("scale of targets", scale, SCALES)


def checked_targets(
    targets: ArrayLike, graphs: int, positive: bool = False, unscaled: bool = False
) -> NDArray[np.float64]:
    """Targets ``(G,)`` as float64.

    Args:
        positive: they have to be above 0, for a relative error.
        unscaled: they are learned as they are by a squared error, and have to lie about 0 to 1.

    Raises:
        DataError: another number than graphs, fewer than two, one that is no number or outside that range.
    """
    try:
        values = np.asarray(targets, np.float64)
    except (TypeError, ValueError):
        raise DataError("targets are no row of numbers; expected one number per graph") from None
    if values.shape != (graphs,):
        raise DataError(f"targets have shape {values.shape} for {graphs} graphs; expected one number per graph")
    if graphs < 2:
        raise DataError(f"{graphs} graph to learn from; expected at least 2, some hundred for a useful predictor")
    if not np.isfinite(values).all():
        wrong = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"target {wrong} is {values[wrong]}; remove the graphs without a measured value")
    if positive and values.min() <= 0:
        raise DataError(f"target {int(values.argmin())} is {values.min()}; expected latencies above 0")
    if unscaled and len(outside := np.flatnonzero((values < UNSCALED[0]) | (values > UNSCALED[1]))):
        raise DataError(
            f"target {outside[0]} is {values[outside[0]]:g}, and targets='none' learns it as it is; expected fractions"
            f" ({UNSCALED[0]:g} to {UNSCALED[1]:g}): divide percent by 100, or scale by targets='mean' (--set"
            " targets=mean)"
        )
    return values


def checked_levels(levels: Sequence[float]) -> NDArray[np.float64]:
    """Probabilities ``(L,)``.

    Raises:
        ConfigError: there is none, or one that is not between 0 and 1.
    """
    try:
        wanted = np.asarray(levels, np.float64)
    except (TypeError, ValueError):
        wanted = np.zeros(0)
    if wanted.ndim != 1 or not len(wanted) or not ((wanted > 0) & (wanted < 1)).all():
        raise ConfigError(f"levels of quantiles are {levels!r}; expected some between 0 and 1, such as [0.1, 0.5, 0.9]")
    return wanted
