"""Predictions beside measurements: who was learned, how large the errors are, and whether the spread holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.latency.by_graph.data import family_quality
from nas_core.report.measured.collection import Floats
from nas_core.report.tables import Column

ALL, AVERAGE = "all", "average"


@dataclass(frozen=True)
class Judged:
    """Predictions ``(n,)`` of measurements ``(n,)``, in one unit."""

    measured: Floats
    predicted: Floats
    spread: Floats
    """Standard deviation of each prediction; 0 where the model has none."""
    families: NDArray[np.str_]
    learned: NDArray[np.bool_] | None
    """Which of them the model has learned; None if that is not known."""

    @property
    def judging(self) -> NDArray[np.bool_]:
        """Those by which the model is judged: not learned where that is known and there are some, else all."""
        if self.learned is None or self.learned.all():
            return np.ones(len(self.measured), np.bool_)
        return ~self.learned

    @property
    def held_out(self) -> bool:
        """Whether all that judge the model are known not to have been learned."""
        return self.learned is not None and not self.learned[self.judging].any()

    @property
    def percent(self) -> Floats:
        """Error of each prediction relative to its measurement, with its sign."""
        return np.asarray(100 * (self.predicted / self.measured - 1), np.float64)

    @property
    def spreads(self) -> bool:
        """Whether the model says how sure it is."""
        return bool((self.spread > 0).any())

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether a measurement lies within one standard deviation of its prediction."""
        return np.asarray(np.abs(self.predicted - self.measured) <= self.spread, np.bool_)

    @property
    def groups(self) -> dict[str, tuple[list[float], list[float]]]:
        """Predictions and measurements of those that judge the model and, beside them, of those it has learned."""
        found = {"held out" if self.held_out else "all": self.judging}
        if self.held_out and self.learned is not None and self.learned.any():
            found["learned"] = self.learned
        return {name: (self.predicted[m].tolist(), self.measured[m].tolist()) for name, m in found.items()}

    def rows(self, which: NDArray[np.bool_] | None = None) -> list[dict[str, Any]]:
        """A row for each family, then the average of families and all in one, where there are several.

        The means and shares are those of ``nas-ext latency train``.
        """
        mask = self.judging if which is None else which
        families = self.families[mask]
        quality = family_quality(self.predicted[mask], self.measured[mask], families)
        several = len(quality) > 3
        rows = []
        for name, one in quality.items():
            if name in (ALL, AVERAGE) and not several:
                continue
            own = mask if name in (ALL, AVERAGE) else mask & (self.families == name)
            row = {
                "family": name,
                "judged": one.count,
                "mape": one.mape_percent,
                "within": one.acc10_percent,
                "inside": float(100 * self.inside[own].mean()) if self.spreads else None,
                "bias": float(self.percent[own].mean()),
                "worst": float(self.percent[own][np.argmax(np.abs(self.percent[own]))]),
            }
            rows.append(row)
        return [_averaged(row, rows) for row in rows]

    def worst(self, count: int, errors: Floats | None = None) -> list[int]:
        """Places of those judged with the largest errors, the worst first.

        Args:
            errors: ``(n,)`` of all, with their signs; default: the relative ones.
        """
        places = np.flatnonzero(self.judging)
        order = np.argsort(-np.abs((self.percent if errors is None else errors)[places]), kind="stable")
        return [int(place) for place in places[order][:count]]


def _averaged(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row as it is; that of the average of families with the means of all their numbers."""
    if row["family"] != AVERAGE:
        return row
    own = [other for other in rows if other["family"] not in (ALL, AVERAGE)]
    means = {
        name: float(np.mean([other[name] for other in own])) for name in ("inside", "bias") if row[name] is not None
    }
    return {**row, **means, "judged": None, "worst": None}


def family_columns(judged: Judged, count: str) -> list[Column]:
    """Columns of :meth:`Judged.rows`; ``count`` is the title of how many were judged."""
    columns = [
        Column("family", "family"),
        Column("judged", count, "d"),
        Column("mape", "mean error (%)", ".2f"),
        Column("within", "within 10 %", ".1f"),
        Column("inside", "within spread", ".1f"),
        Column("bias", "signed (%)", "+.2f"),
        Column("worst", "worst (%)", "+.1f"),
    ]
    return [column for column in columns if column.key != "inside" or judged.spreads]
