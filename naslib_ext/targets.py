"""In which units NASLib's search spaces give accuracies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNITS = ("auto", "percent", "fraction", "any")


def units_of(targets: NDArray[np.float64]) -> str:
    """Judged by the range of the targets ``(G,)``.

    NN-Former's output starts at 0.5 and its losses are weighed for accuracies as fractions. NAS-Bench-101, -201 and
    -301 give percent; TransNAS-Bench gives percent, fractions or negative losses, depending on the task.

    Returns:
        ``fraction``: all from 0 to 1. ``percent``: all from 0 to 100, not all below 1. ``any``: beyond that; to be
        learned relative to their mean and spread.
    """
    if not len(targets) or targets.min() < 0 or targets.max() > 100:
        return "any"
    return "percent" if targets.max() > 1 else "fraction"
