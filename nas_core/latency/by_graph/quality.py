"""Quality of predictions family by family, as in the latency tables of NN-Former (Tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError
from nas_core.predictor.metrics import accuracy_within, mape


@dataclass(frozen=True)
class FamilyQuality:
    """Quality of ``count`` predictions."""

    count: int
    mape_percent: float
    """Mean absolute error relative to the measurement."""
    acc10_percent: float
    """Share of predictions within 10 % of the measurement."""


def family_quality(
    predicted_ms: ArrayLike, measured_ms: ArrayLike, families: Sequence[str] | NDArray[np.str_]
) -> dict[str, FamilyQuality]:
    """One row for each family, in the order they come; ``all`` has all predictions in one, ``average`` the means of the
    families' rows. The two differ where families are of unequal size.

    Raises:
        DataError: rows of unequal length, none at all, or a value that is no number.
    """
    names = np.asarray(families)
    predicted, measured = np.asarray(predicted_ms), np.asarray(measured_ms)
    if not names.shape == predicted.shape == measured.shape or names.ndim != 1:
        raise DataError(
            f"predictions {predicted.shape}, measurements {measured.shape}, families {names.shape}; expected equal rows"
        )

    def row(mask: NDArray[np.bool_]) -> FamilyQuality:
        first, second = predicted[mask], measured[mask]
        return FamilyQuality(len(first), mape(first, second), accuracy_within(first, second))

    found = {str(family): row(names == family) for family in dict.fromkeys(names.tolist())}
    everything = row(np.ones(len(names), np.bool_))
    errors, shares = zip(*((q.mape_percent, q.acc10_percent) for q in found.values()), strict=True)
    average = FamilyQuality(len(names), float(np.mean(errors)), float(np.mean(shares)))
    return {**found, "average": average, "all": everything}


def family_table(rows: dict[str, FamilyQuality]) -> str:
    """A text table with one line for each row."""
    width = max(8, *(len(name) for name in rows))
    lines = [f"{'':{width}} {'count':>6} {'MAPE %':>8} {'Acc(10 %)':>10}"]
    lines += [f"{n:{width}} {q.count:6d} {q.mape_percent:8.2f} {q.acc10_percent:10.2f}" for n, q in rows.items()]
    return "\n".join(lines)
