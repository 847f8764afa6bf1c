"""Base class of strategies that minimise several metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint, Limits, violation
from nas_core.search.journal import plain_metrics
from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture, SearchSpace

Array = NDArray[np.float64]


class MultiObjectiveStrategy(Strategy):
    """Strategy with a Pareto front of several metrics.

    A result without an objective is a failure; a missing limited metric is replaced by its prediction. Results above a
    limit are not on the front.

    Args:
        objectives: metrics to minimise; :meth:`best` uses the first.
    """

    multi_objective: ClassVar[bool] = True

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: Any = None,
        *,
        objectives: Sequence[str] = ("loss", "latency_ms"),
        seed: int = 0,
    ) -> None:
        if isinstance(objectives, str) or len(objectives) < 2 or len(set(objectives)) != len(objectives):
            raise ConfigError(f"objectives are {objectives!r}; expected at least two names of metrics, none twice")
        if self.max_objectives and len(objectives) > self.max_objectives:
            raise ConfigError(
                f"objectives are {list(objectives)}; strategy {self.name} has at most {self.max_objectives}, strategy"
                " multi-objective any number"
            )
        super().__init__(space, constraints, config, seed=seed, metric=objectives[0])
        self._objectives = tuple(objectives)
        self._vectors: dict[bytes, tuple[float, ...]] = {}
        self._outside: dict[bytes, float] = {}

    @property
    def objectives(self) -> tuple[str, ...]:
        return self._objectives

    @classmethod
    def create(
        cls,
        space: SearchSpace,
        constraints: Sequence[Constraint],
        config: Any,
        objectives: Sequence[str],
        seed: int,
        **options: Any,
    ) -> Strategy:
        return cls(space, constraints, config, objectives=objectives, seed=seed, **options)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "objectives": list(self._objectives)}

    def best(self) -> tuple[Architecture, float] | None:
        """Return the architecture with the smallest first objective, feasible ones first, and its value; None without a
        result."""
        members = [key for key in self._members if key in self._vectors]
        if not members:
            return None
        key = min(members, key=lambda key: (self._outside[key], self._scores[key]))
        return self._values([key])[0], self._scores[key]

    def front(self) -> list[tuple[Architecture, tuple[float, ...]]]:
        """Return the Pareto front of the proposed architectures with their objectives, sorted by the first."""
        keys = [key for key in self._members if key in self._vectors]
        if not keys:
            return []
        indices = np.flatnonzero(fronts(*self._vectors_of(keys)) == 0)
        first = sorted((keys[index] for index in indices), key=self._vectors.__getitem__)
        return list(zip(self._values(first), map(self._vectors.__getitem__, first), strict=True))

    def _learn(self, key: bytes, metrics: Mapping[str, Any]) -> float:
        numbers, row = plain_metrics(metrics), self._rows([key])
        limits = self.proposals.constraints
        for constraint in limits:
            if numbers.get(constraint.name) is None:
                numbers[constraint.name] = float(constraint.values(row)[0])
        vector = tuple(math.nan if (value := numbers.get(name)) is None else value for name in self._objectives)
        if not np.isfinite(vector).all():
            return math.inf
        self._vectors[key] = vector
        values = [np.array([numbers[constraint.name]], np.float64) for constraint in limits]
        self._outside[key] = float(violation(limits, values)[0]) if limits else 0.0
        return vector[0]

    def _vectors_of(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        """Return objectives ``(n, m)`` and violations ``(n,)``."""
        return np.array([self._vectors[key] for key in keys]), np.array([self._outside[key] for key in keys])


def fronts(values: Array, outside: Array) -> NDArray[np.int64]:
    """Return the front index ``(n,)`` of each vector by non-dominated sorting (NSGA-II, III.A and VI.A).

    Args:
        values: ``(n, m)``, finite, minimised.
        outside: violation of the limits ``(n,)``; smaller ones dominate.
    """
    at_most = np.ones((len(values), len(values)), np.bool_)
    for column in values.T:
        at_most &= column[:, None] <= column[None, :]
    less, equal = outside[:, None] < outside[None, :], outside[:, None] == outside[None, :]
    dominates = less | (equal & at_most & ~at_most.T)
    front = np.full(len(values), -1, np.int64)
    dominated_by = dominates.sum(0)
    index = 0
    while (unassigned := front < 0).any():
        first = unassigned & (dominated_by == 0)
        front[first] = index
        dominated_by -= dominates[first].sum(0)
        index += 1
    return front
