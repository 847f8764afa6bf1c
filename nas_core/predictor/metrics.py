"""How good predictions are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import kendalltau

from nas_core.errors import DataError

__all__ = ["accuracy_within", "kendall_tau", "mape"]


def kendall_tau(predicted: ArrayLike, target: ArrayLike) -> float:
    """Kendall's tau-b, -1 to 1; 0 when either side is constant."""
    first, second = _pair(predicted, target)
    value = float(kendalltau(first, second).statistic)
    return 0.0 if math.isnan(value) else value


def mape(predicted: ArrayLike, target: ArrayLike) -> float:
    """Mean absolute percentage error, in percent."""
    first, second = _pair(predicted, target)
    return float(100 * np.mean(np.abs(first - second) / np.abs(second)))


def accuracy_within(predicted: ArrayLike, target: ArrayLike, percent: float = 10.0) -> float:
    """Share of predictions within so many percent of the target, in percent: Acc(10 %)."""
    first, second = _pair(predicted, target)
    return float(100 * np.mean(np.abs(first - second) <= percent / 100 * np.abs(second)))


def _pair(predicted: ArrayLike, target: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = np.asarray(predicted, np.float64), np.asarray(target, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise DataError(f"predictions {first.shape} and targets {second.shape}; expected two equal, non-empty rows")
    return first, second
