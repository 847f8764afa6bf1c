"""The two figures of a gap: an error and a rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from nas_core.errors import DataError

FEWEST = 3
"""A rank correlation of fewer architectures says nothing: of two it is 1 or -1."""


class Agreement(NamedTuple):
    """How well inherited qualities tell standalone ones."""

    error: float
    """Mean absolute difference, in the unit of the quality."""
    tau: float
    """Kendall's tau-b, from -1 to 1."""
    bias: float
    """Mean of inherited minus standalone quality."""


def agreement(inherited: Sequence[float], standalone: Sequence[float]) -> Agreement:
    """The figures of Table 4 of Mixture-of-Supernets for architectures of which both qualities are known (n,).

    Raises:
        DataError: fewer than three, one that is not finite, or all of a kind equal, of which there is no ranking.
    """
    first, second = np.asarray(inherited, dtype=float), np.asarray(standalone, dtype=float)
    if len(first) != len(second) or len(first) < FEWEST:
        raise DataError(f"{len(first)} architectures; expected at least {FEWEST} for a rank correlation: give more")
    for values, what in ((first, "inherited"), (second, "standalone")):
        if not np.isfinite(values).all():
            raise DataError(f"an {what} quality is {values[~np.isfinite(values)][0]}; expected finite numbers")
        if len(set(values.tolist())) == 1:
            raise DataError(
                f"all {len(values)} {what} qualities are {values[0]:g}, so that there is no ranking; give networks that"
                " differ more, or that were trained for longer"
            )
    difference = first - second
    tau = float(kendalltau(first, second).statistic)
    return Agreement(float(np.abs(difference).mean()), tau, float(difference.mean()))
