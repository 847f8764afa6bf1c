"""Metrics of predictions: Kendall's tau, MAPE, Acc(10 %)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError


def kendall_tau(predicted: ArrayLike, target: ArrayLike) -> float:
    """Return Kendall's tau-b; 0 if the predictions or the targets are constant.

    Raises:
        DataError: the lengths differ, or a value is not finite.
    """
    first, second = _pair(predicted, target)
    from scipy.stats import kendalltau  # takes as long to import as torch

    value = float(kendalltau(first, second).statistic)
    return 0.0 if math.isnan(value) else value


def mape(predicted: ArrayLike, target: ArrayLike) -> float:
    """Return the mean absolute percentage error in percent."""
    first, second = _pair(predicted, target)
    if not second.all():
        raise DataError(f"target {int(np.flatnonzero(second == 0)[0])} is 0, which has no relative error; leave it out")
    return float(100 * np.mean(np.abs(first - second) / np.abs(second)))


def accuracy_within(predicted: ArrayLike, target: ArrayLike, percent: float = 10.0) -> float:
    """Return the percentage of predictions that differ from the target by at most ``percent``: Acc(10 %)."""
    first, second = _pair(predicted, target)
    return float(100 * np.mean(np.abs(first - second) <= percent / 100 * np.abs(second)))


def _pair(predicted: ArrayLike, target: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.asarray(predicted, np.float64), np.asarray(target, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise DataError(
            f"predictions have shape {first.shape}, targets {second.shape}; expected equal shapes (n,) with n above 0"
        )
    for name, row in (("prediction", first), ("target", second)):
        if len(invalid := np.flatnonzero(~np.isfinite(row))):
            raise DataError(f"{name} {invalid[0]} is {row[invalid[0]]}; expected finite numbers: leave such graphs out")
    return first, second
