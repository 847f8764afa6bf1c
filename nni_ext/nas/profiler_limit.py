"""Profilers of NNI as hard limits of a search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, ConstraintError, NasExtError
from nas_core.search import Constraint
from nas_core.space.slots import Rows
from nni_ext.compat import nni_module
from nni_ext.graphs import Sample
from nni_ext.nas.flat import FlatSpace

_FEATURE = "limiting searches with NNI's profilers"
PROBES, DRAWN = 10, 200
"""So many samples that the model space accepts, among so many random ones, are tried on a profiler."""


@dataclass(frozen=True)
class ProfilerLimit:
    """``profiler.profile(sample) <= limit``.

    Raises:
        ConfigError: what is given as profiler has no ``profile``. ConstraintError: the limit is no number above 0.
    """

    name: str
    """Name of the cost, with its unit: ``flops``, ``params``, ``latency_ms``."""
    profiler: Any
    """A ``nni.nas.profiler.Profiler`` of the model space that is searched."""
    limit: float
    """Largest value allowed, in the profiler's unit."""

    def __post_init__(self) -> None:
        if not callable(getattr(self.profiler, "profile", None)):
            raise ConfigError(
                f"the profiler of {self.name!r} is a {type(self.profiler).__name__}; expected a Profiler of NNI, such"
                " as FlopsProfiler(model_space, inputs) or nni_ext.PredictorProfiler(model_space, predictor)"
            )
        number = isinstance(self.limit, int | float) and not isinstance(self.limit, bool)
        if not number or not math.isfinite(self.limit) or self.limit <= 0:
            raise ConstraintError(f"limit of {self.name} is {self.limit!r}; expected a number above 0")


def as_limits(given: Mapping[str, Any] | Sequence[ProfilerLimit]) -> tuple[ProfilerLimit, ...]:
    """From ``{name: (profiler, limit)}`` or a list of limits.

    Raises:
        ConfigError: anything else, or a name that comes twice. ConstraintError: see :class:`ProfilerLimit`.
    """
    if isinstance(given, Mapping):
        for name, pair in given.items():
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ConfigError(f"constraint {name!r} is {pair!r}; expected (profiler, limit)")
        return tuple(ProfilerLimit(str(name), *pair) for name, pair in given.items())
    if not isinstance(given, list | tuple) or not all(isinstance(one, ProfilerLimit) for one in given):
        raise ConfigError(f"constraints are {given!r}; expected {{name: (profiler, limit)}} or a list of ProfilerLimit")
    names = [one.name for one in given]
    if len(set(names)) < len(names):
        raise ConfigError(f"constraints are named {', '.join(names)}; give each another name")
    return tuple(given)


def validity_constraint(flat: FlatSpace, model_space: Any) -> Constraint:
    """What NNI would refuse when it freezes a sample is never asked for."""

    def invalid(row: NDArray[np.int16]) -> float:
        return 0.0 if model_space.contains(flat.sample_of_row(row)) else 1.0

    return Constraint("invalid", 0.5, lambda rows: np.array([invalid(row) for row in rows]))


def limit_constraint(flat: FlatSpace, model_space: Any, limit: ProfilerLimit) -> Constraint:
    """The limit for the search; each architecture is profiled once. A sample that the profiler refuses is not let in.

    Raises:
        ConfigError: the profiler does not know the samples of this model space.
    """
    profiler, known = limit.profiler, dict[bytes, float]()
    at_once = _Expression.of(profiler, flat)
    _probe(flat, model_space, limit)

    def one(sample: Sample) -> float:
        try:
            return float(profiler.profile(sample))
        except (NasExtError, nni_module("nni.mutable", _FEATURE).SampleValidationError):
            return math.nan

    def many(rows: Rows) -> Sequence[float]:
        if at_once is not None:
            return at_once(rows)
        samples = [flat.sample_of_row(row) for row in rows]
        if hasattr(profiler, "profile_many"):
            try:
                return [float(value) for value in profiler.profile_many(samples)]
            except NasExtError:  # one of them is to blame
                pass
        return [one(sample) for sample in samples]

    def predict_rows(rows: Rows) -> NDArray[np.floating]:
        keys = [row.tobytes() for row in rows]
        fresh = [index for index, key in enumerate(keys) if key not in known]
        if fresh:
            known.update(zip([keys[index] for index in fresh], many(rows[fresh]), strict=True))
        return np.array([known[key] for key in keys], np.float64)

    return Constraint(limit.name, float(limit.limit), predict_rows, getattr(profiler, "together", 0))


class _Expression:
    """An expression profiler for many rows: each node of its expression is computed for all of them in turn, with
    exactly the functions that ``profile`` calls, some seven times faster."""

    def __init__(self, expression: Any, flat: FlatSpace, symbols: Any) -> None:
        self.expression, self.flat, self.symbols = expression, flat, symbols

    @classmethod
    def of(cls, profiler: Any, flat: FlatSpace) -> _Expression | None:
        """None for other profilers, and where the expression has labels of its own."""
        symbols = nni_module("nni.mutable.symbol", _FEATURE)
        plain = nni_module("nni.nas.profiler.profiler", _FEATURE).ExpressionProfiler
        expression = getattr(profiler, "expression", None)
        if getattr(type(profiler), "profile", None) is not plain.profile:
            return None
        if not isinstance(expression, symbols.SymbolicExpression):
            return None
        labels = {str(symbol.label) for symbol in expression.leaf_symbols()}
        return cls(expression, flat, symbols) if labels <= set(flat.labels) else None

    def __call__(self, rows: Rows) -> list[float]:
        slots = {label: slot for slot, label in enumerate(self.flat.labels)}
        done: dict[int, list[Any]] = {}

        def column(node: Any) -> list[Any]:
            if id(node) not in done:
                if isinstance(node, self.symbols.Symbol):
                    slot = slots[str(node.label)]
                    values = self.flat.values[slot]
                    done[id(node)] = [values[max(index, 0)] for index in rows[:, slot].tolist()]
                else:
                    known = self.symbols.SymbolicExpression
                    arguments = [column(a) if isinstance(a, known) else itertools.repeat(a) for a in node.arguments]
                    done[id(node)] = list(map(node.function, *arguments))
            return done[id(node)]

        return [float(value) for value in column(self.expression)]


def _probe(flat: FlatSpace, model_space: Any, limit: ProfilerLimit) -> None:
    """Some samples through the profiler, so that a wrong one is told before the search; it may refuse some."""
    rows = [flat.space.row(flat.space.smallest()), *flat.space.sample_rows(np.random.default_rng(0), DRAWN)]
    samples = (flat.sample_of_row(row) for row in rows)
    valid = [sample for sample in samples if not flat.checked or model_space.contains(sample)][:PROBES]
    problem = None
    for sample in valid:
        try:
            value = float(limit.profiler.profile(sample))
        except Exception as error:  # whatever a profiler raises for labels that it does not know
            problem = error
            continue
        if not math.isnan(value):
            return
    if valid and isinstance(problem, NasExtError):
        raise ConfigError(f"the profiler of {limit.name!r} judges no sample of this model space: {problem}")
    if valid:
        raise ConfigError(
            f"the profiler of {limit.name!r} returns no number for samples of this model space"
            f" ({'NaN' if problem is None else f'{type(problem).__name__}: {problem}'}); make it of the space that is"
            " searched, and let profile return one number"
        ) from problem
