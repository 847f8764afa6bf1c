"""Expected improvement over the best value (Mockus 1975)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr

Array = NDArray[np.float64]
ROOT = float(np.sqrt(2 * np.pi))
FAR = -1e6  # value of z below which log(z Phi(z) + phi(z)) equals -z^2 / 2 - log(z^2) in float64


def expected_improvement(mean: ArrayLike, spread: ArrayLike, best: float, *, maximize: bool = True) -> Array:
    """Return the expected improvement ``(B,)`` over the best value (Jones et al. 1998, equation 15).

    Example:
        >>> mean, spread = predictor.predict_with_std(candidates)
        >>> order = np.argsort(-expected_improvement(mean, spread, accuracies.max()))

    Args:
        mean: ``(B,)`` predictions.
        spread: ``(B,)`` standard deviations of the predictions.
        best: best measured value.
        maximize: False for values to minimise, such as losses.
    """
    gain, deviation = _gain(mean, best, maximize), np.asarray(spread, np.float64)
    z = np.divide(gain, deviation, out=np.zeros_like(gain), where=deviation > 0)
    improvement = deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / ROOT)
    return np.asarray(np.where(deviation > 0, np.maximum(improvement, 0.0), np.maximum(gain, 0.0)))


def log_expected_improvement(mean: ArrayLike, spread: ArrayLike, best: float, *, maximize: bool = True) -> Array:
    """Return the logarithm ``(B,)`` of :func:`expected_improvement`, without underflow (Ament et al. 2023)."""
    gain, deviation = _gain(mean, best, maximize), np.asarray(spread, np.float64)
    certain = deviation <= 0
    z = np.divide(gain, deviation, out=np.zeros_like(gain), where=~certain)
    with np.errstate(divide="ignore"):
        of_gain = np.log(np.maximum(gain, 0.0))
        logarithm = np.log(np.where(certain, 1.0, deviation)) + _log_unit(z)
    return np.asarray(np.where(certain, of_gain, logarithm))


def _log_unit(z: Array) -> Array:
    near, below = np.maximum(z, -1.0), np.clip(z, FAR, -1.0)
    direct = np.log(near * ndtr(near) + np.exp(-(near**2) / 2) / ROOT)
    # Phi(z) / phi(z) = sqrt(pi / 2) erfcx(-z / sqrt(2)); 1 + z Phi / phi loses its digits from about -1e5 on.
    ratio = np.sqrt(np.pi / 2) * erfcx(-below / np.sqrt(2))
    factor = np.where(below > -1e3, 1 + below * ratio, 1 / below**2)
    far = -(np.minimum(z, -1.0) ** 2) / 2 - np.log(ROOT) + np.log(np.maximum(factor, np.finfo(float).tiny))
    return np.asarray(np.where(z > -1.0, direct, far))


def _gain(mean: ArrayLike, best: float, maximize: bool) -> Array:
    gain = np.asarray(mean, np.float64) - best
    return gain if maximize else -gain
