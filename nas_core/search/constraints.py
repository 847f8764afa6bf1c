"""Constraints on predicted metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConstraintError
from nas_core.progress import SlowWork
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

PredictRows = Callable[[Rows], NDArray[np.floating]]
"""Function that predicts a metric ``(n,)`` from architectures as option indices ``(n, slots)``."""


def cached_rows(predict: Callable[[Rows], Sequence[float]]) -> PredictRows:
    """Return a function that predicts each architecture once."""
    cache: dict[bytes, float] = {}

    def predict_rows(rows: Rows) -> NDArray[np.floating]:
        fresh = {key: index for index, row in enumerate(rows) if (key := row.tobytes()) not in cache}
        if fresh:
            cache.update(zip(fresh, predict(rows[list(fresh.values())]), strict=True))
        return np.array([cache[row.tobytes()] for row in rows], np.float64)

    return predict_rows


@dataclass(frozen=True)
class Constraint:
    """Constraint ``metric <= limit`` on a predicted metric; NaN violates it.

    Raises:
        ConstraintError: the limit is not positive.
    """

    name: str
    """Metric, with its unit: ``latency_ms``, ``params_m``, ``flops_g``."""
    limit: float
    """Largest allowed value, in the metric's unit."""
    predict_rows: PredictRows
    batch_size: int = 0
    """Batch size of a slow predictor; 0 if the predictor is fast."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit) and self.limit > 0):
            raise ConstraintError(f"the limit of {self.name} is {self.limit}; expected a number above 0")

    @classmethod
    def per_architecture(
        cls, name: str, limit: float, space: SearchSpace, predict: Callable[[Architecture], float]
    ) -> Constraint:
        """Return a constraint whose predictor takes one architecture; predictions are cached."""
        return cls.cached(name, limit, lambda rows: [float(predict(space.architecture(row))) for row in rows])

    @classmethod
    def cached(
        cls, name: str, limit: float, predict: Callable[[Rows], Sequence[float]], batch_size: int = 0
    ) -> Constraint:
        """Return a constraint that predicts each architecture once."""
        return cls(name, limit, cached_rows(predict), batch_size)

    @property
    def label(self) -> str:
        """Constraint as text, such as ``latency_ms<=8``."""
        return f"{self.name}<={self.limit:g}"

    def values(self, rows: Rows) -> NDArray[np.float64]:
        """Return the predicted metric ``(n,)`` of architectures, given as option indices ``(n, slots)``.

        Raises:
            ConstraintError: the predictor returns another shape.
        """
        if not len(rows):
            return np.zeros(0)
        step = self.batch_size or len(rows)
        work, batches = SlowWork(f"predicting {self.name} of architectures", len(rows)), list[Any]()
        for start in range(0, len(rows), step):
            batches.append(self.predict_rows(rows[start : start + step]))
            work.advance(min(start + step, len(rows)))
        values = np.asarray(batches[0] if len(batches) == 1 else np.concatenate(batches), np.float64)
        if values.shape != (len(rows),):
            raise ConstraintError(
                f"the predictor of {self.name} returned shape {values.shape} for {len(rows)} rows;"
                f" expected one value per row, shape ({len(rows)},)"
            )
        return values


Limits = Constraint | Sequence[Constraint] | Mapping[str, tuple[Callable[[Architecture], float], float]]
"""Constraints, or a dictionary: metric -> (function of one architecture, largest value allowed)."""


def constraints_of(space: SearchSpace, limits: Limits) -> tuple[Constraint, ...]:
    """Convert limits to a tuple of constraints."""
    if isinstance(limits, Constraint):
        return (limits,)
    try:
        if isinstance(limits, Mapping):
            pairs = {name: (function, float(limit)) for name, (function, limit) in limits.items()}
            return tuple(Constraint.per_architecture(name, limit, space, f) for name, (f, limit) in pairs.items())
        constraints = tuple(limits)
    except (TypeError, ValueError):
        constraints = (limits,)  # type: ignore[assignment]
    if invalid := [item for item in constraints if not isinstance(item, Constraint)]:
        raise ConstraintError(
            f"{invalid[0]!r} is not a constraint; expected Constraint objects, or a dictionary: metric -> (function of"
            " an architecture, largest value allowed)"
        )
    return constraints


class InfeasibleError(ConstraintError):
    """Error raised if no architecture meets the limits."""

    acceptance: float
    """Fraction of tried architectures that meet all limits."""
    bounds: dict[str, float]
    """Metric -> smallest value of the tried architectures."""
    closest: Architecture
    """Tried architecture with the smallest :func:`violation`."""


def violation(constraints: Sequence[Constraint], values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sum ``(n,)`` over constraints of max(0, value / limit - 1); 0 is feasible.

    Args:
        values: predictions ``(n,)`` for each constraint; NaN gives infinity.
    """
    total = np.zeros(len(values[0]) if values else 0)
    for constraint, value in zip(constraints, values, strict=True):
        total += np.maximum(np.nan_to_num(value, nan=np.inf, neginf=-np.inf) / constraint.limit - 1.0, 0.0)
    return total
