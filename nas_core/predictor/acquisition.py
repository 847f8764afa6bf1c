"""Expected improvement over the best value (Mockus 1975)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]
ROOT = float(np.sqrt(2 * np.pi))


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: float, *, maximize: bool = True) -> Array:
    """Return the expected improvement ``(B,)`` over the best value (Jones et al. 1998, equation 15).

    Example:
        >>> mean, std = predictor.predict_with_std(candidates)
        >>> order = np.argsort(-expected_improvement(mean, std, accuracies.max()))

    Args:
        mean: ``(B,)`` predictions.
        std: ``(B,)`` standard deviations of the predictions.
        best: best measured value.
        maximize: False for values to minimise, such as losses.
    """
    above, deviation = np.asarray(mean, np.float64) - best, np.asarray(std, np.float64)
    gain = above if maximize else -above
    z = np.divide(gain, deviation, out=np.zeros_like(gain), where=deviation > 0)
    improvement = deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / ROOT)
    return np.asarray(np.where(deviation > 0, np.maximum(improvement, 0.0), np.maximum(gain, 0.0)))
