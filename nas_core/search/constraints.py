"""Hard constraints: a predicted metric that must not exceed a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConstraintError
from nas_core.progress import SlowWork
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

PredictRows = Callable[[Rows], NDArray[np.floating]]
"""Predicts a metric ``(n,)`` for rows of option indices ``(n, slots)``."""


@dataclass(frozen=True)
class Constraint:
    """``metric <= limit``, where the metric is predicted for many rows of the space at once.

    A prediction that is no number counts as a violation: an architecture the model cannot judge is not let through.

    Raises:
        ConstraintError: the limit is not a positive number, or the predictor returns another shape than ``(n,)``.
    """

    name: str
    """The metric with its unit, as it stands in the journal: ``latency_ms``, ``params_m``, ``flops_g``."""
    limit: float
    """Largest value allowed, in the metric's unit."""
    predict_rows: PredictRows
    """Vectorised predictor: rows ``(n, slots)`` -> values ``(n,)``."""
    together: int = 0
    """Rows to predict at once by a slow predictor, which is asked for no more than are needed; 0: it is fast."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit) and self.limit > 0):
            raise ConstraintError(f"limit of {self.name} is {self.limit}; expected a number above 0")

    @classmethod
    def per_architecture(
        cls, name: str, limit: float, space: SearchSpace, predict: Callable[[Architecture], float]
    ) -> Constraint:
        """From a function of one architecture; each row is computed once. Some hundred times slower than rows."""
        known: dict[bytes, float] = {}

        def predict_rows(rows: Rows) -> NDArray[np.floating]:
            values = np.empty(len(rows))
            for index, row in enumerate(rows):
                key = row.tobytes()
                if key not in known:
                    found = predict(space.architecture(row))
                    try:
                        known[key] = float(found)
                    except (TypeError, ValueError):
                        raise ConstraintError(f"the function of {name} gave {found!r}; expected a number") from None
                values[index] = known[key]
            return values

        return cls(name, limit, predict_rows)

    @property
    def label(self) -> str:
        """For people and for names of searches: ``latency_ms<=8``."""
        return f"{self.name}<={self.limit:g}"

    def values(self, rows: Rows) -> NDArray[np.float64]:
        """The predicted metric ``(n,)``."""
        if not len(rows):
            return np.zeros(0)
        step = self.together or len(rows)
        work, parts = SlowWork(f"predicting {self.name} of architectures", len(rows)), list[Any]()
        for start in range(0, len(rows), step):
            parts.append(self.predict_rows(rows[start : start + step]))
            work.advance(min(start + step, len(rows)))
        values = np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts), np.float64)
        if values.shape != (len(rows),):
            raise ConstraintError(
                f"the predictor of {self.name} returned shape {values.shape} for {len(rows)} rows;"
                f" expected one value per row, shape ({len(rows)},)"
            )
        return values


Limits = Constraint | Sequence[Constraint] | Mapping[str, tuple[Callable[[Architecture], float], float]]
"""Hard limits as they may be given: one constraint, several, or ``metric -> (function of one architecture, limit)``."""


def constraints_of(space: SearchSpace, limits: Limits) -> tuple[Constraint, ...]:
    """The constraints of limits in any of their forms; functions become :meth:`Constraint.per_architecture`.

    Raises:
        ConstraintError: one is no constraint; a value of the mapping is no pair of a function and a limit.
    """
    if isinstance(limits, Constraint):
        return (limits,)
    if not isinstance(limits, Mapping):
        several: tuple[Any, ...] = tuple(limits) if isinstance(limits, Iterable) else (limits,)
        if wrong := [one for one in several if not isinstance(one, Constraint)]:
            raise ConstraintError(
                f"{wrong[0]!r} is no limit; expected constraints, or a dictionary: metric -> (function of an"
                " architecture, largest value allowed)"
            )
        return several
    found = []
    given: Mapping[str, Any] = limits
    for name, pair in given.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[0]) and _is_number(pair[1])):
            raise ConstraintError(
                f"the limit of {name} is {pair!r}; expected (function of an architecture, largest value allowed)"
            )
        found.append(Constraint.per_architecture(name, float(pair[1]), space, pair[0]))
    return tuple(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


class InfeasibleError(ConstraintError):
    """Nothing within the limits was found; the message and the attributes say how far away the space is."""

    acceptance: float
    """Share of the distinct architectures tried that met all limits."""
    bounds: dict[str, float]
    """The smallest value of each constrained metric seen."""
    closest: Architecture
    """The architecture with the least violation, summed over the constraints relative to their limits."""


def violation(constraints: Sequence[Constraint], values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """How far each candidate is outside ``(n,)``: sum over the constraints of (value - limit) / limit where positive.

    0 is feasible; NaN predictions count as infinitely far. (The order is Optuna's: feasible first, then least sum.)
    """
    total = np.zeros(len(values[0]) if values else 0)
    for constraint, value in zip(constraints, values, strict=True):
        total += np.maximum(np.nan_to_num(value, nan=np.inf, neginf=-np.inf) / constraint.limit - 1.0, 0.0)
    return total
