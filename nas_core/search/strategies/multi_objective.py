"""NSGA-II: evolution of a Pareto front.

Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC 6(2), 2002. Differences:

- Children come from mutation or crossover as in HAT's evolution, and no architecture is proposed twice.
- Architectures predicted to violate a limit are not proposed; violations found by evaluation are handled as in the
  paper.
- Failed evaluations leave the population.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint, Limits, violation
from nas_core.search.journal import plain_metrics
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.proposals import row_keys
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

Array = NDArray[np.float64]
_RANGES = {
    "iterations": Range(1),
    "population": Range(2),
    "mutations": Range(0),
    "crossovers": Range(0),
    "mutation_prob": Range(0, 1, without=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class MultiObjectiveConfig:
    """Settings of NSGA-II; the defaults evaluate as many architectures as HAT's evolution."""

    iterations: int = 30
    """Number of generations, including the random first one."""
    population: int = 100
    """Number of architectures that survive and have children; by default there are as many children, half by mutation.
    """
    mutations: int = 50
    """Number of children by mutation in each generation."""
    crossovers: int = 50
    """Number of children by crossover in each generation."""
    mutation_prob: float = 0.1
    """Probability with which mutation redraws each gene, uniformly from its options."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        if self.mutations + self.crossovers < 1:
            raise ConfigError("mutations and crossovers are both 0; expected at least one of them above 0")

    @classmethod
    def of(cls, **settings: Any) -> MultiObjectiveConfig:
        """Return settings; missing numbers of children follow from the population."""
        population = settings.get("population")
        if isinstance(population, int) and population > 0:
            settings = {"mutations": (population + 1) // 2, "crossovers": population // 2, **settings}
        return cls(**settings)


class MultiObjectiveEvolution(Strategy):
    """NSGA-II within limits.

    A result without an objective is a failure; a missing limited metric is replaced by its prediction.

    Args:
        objectives: metrics to minimise; :meth:`best` uses the first.
    """

    config: MultiObjectiveConfig
    name: ClassVar[str] = "multi-objective"
    purpose: ClassVar[str] = "NSGA-II: the whole front of several metrics in one search"
    config_class: ClassVar[type[Any]] = MultiObjectiveConfig
    multi_objective: ClassVar[bool] = True
    budget_formula: ClassVar[str] = "{population} + ({iterations} - 1) x ({mutations} + {crossovers})"

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: MultiObjectiveConfig | None = None,
        *,
        objectives: Sequence[str] = ("loss", "latency_ms"),
        seed: int = 0,
        max_tries: int = 20_000,
    ) -> None:
        if isinstance(objectives, str) or len(objectives) < 2 or len(set(objectives)) != len(objectives):
            raise ConfigError(f"objectives are {objectives!r}; expected at least two different metric names")
        super().__init__(space, constraints, config, seed=seed, metric=objectives[0], max_tries=max_tries)
        self._objectives = tuple(objectives)
        self._vectors: dict[bytes, tuple[float, ...]] = {}
        self._outside: dict[bytes, float] = {}
        self._parents: list[bytes] = []
        self._children: list[bytes] = []

    @property
    def objectives(self) -> tuple[str, ...]:
        return self._objectives

    @property
    def budget(self) -> int:
        children = self.config.mutations + self.config.crossovers
        return self.config.population + (self.config.iterations - 1) * children

    @classmethod
    def create(
        cls,
        space: SearchSpace,
        constraints: Sequence[Constraint],
        config: Any,
        objectives: Sequence[str],
        **common: Any,
    ) -> Strategy:
        return cls(space, constraints, config, objectives=objectives, **common)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "objectives": list(self._objectives)}

    def best(self) -> tuple[Architecture, float] | None:
        """Return the architecture with the smallest first objective, those within the limits first; None without a
        result.
        """
        members = [key for key in self._members if key in self._vectors]
        if not members:
            return None
        key = min(members, key=lambda key: (self._outside[key], self._scores[key]))
        return self._values([key])[0], self._scores[key]

    def front(self) -> list[tuple[Architecture, tuple[float, ...]]]:
        """Return the Pareto front as (architecture, objectives), sorted by the first objective."""
        keys = [key for key in self._members if key in self._vectors]
        if not keys:
            return []
        places = np.flatnonzero(fronts(*self._vectors_of(keys)) == 0)
        first = sorted((keys[place] for place in places), key=self._vectors.__getitem__)
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

    def _propose(self) -> Rows | None:
        if self.generation == self.config.iterations:
            return None
        pool = [key for key in (*self._parents, *self._children) if key in self._vectors]
        if pool:
            self._parents = [pool[place] for place in best_first(*self._vectors_of(pool))[: self.config.population]]
            rows = np.concatenate(self._offspring(self._rows(self._parents)))
        else:  # the first generation, or all evaluations failed
            rows = self.proposals.initial(self.rng, self.config.population, set(self._members))
        before = [] if self.generation else list(self._vectors)
        self._children = list(dict.fromkeys([*row_keys(rows), *before]))
        return rows

    def _vectors_of(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        return np.array([self._vectors[key] for key in keys]), np.array([self._outside[key] for key in keys])

    def _offspring(self, parents: Rows) -> tuple[Rows, Rows]:
        taken, count = set(self._members), len(parents)

        def winners(k: int) -> Rows:
            won: Rows = parents[self.rng.integers(count, size=(2, k)).min(0)]  # parents are sorted
            return won

        def mutated(k: int) -> Rows:
            return self.space.mutate_rows(winners(k), self.config.mutation_prob, self.rng)

        def crossed(k: int) -> Rows:
            return self.space.crossover_rows(winners(k), winners(k), self.rng)

        mutations = self.proposals.take(mutated, self.config.mutations, taken)
        crossovers = self.proposals.take(crossed, self.config.crossovers, taken)
        return mutations, crossovers

    def _state(self) -> dict[str, Any]:
        vectors = [self._vectors.get(key) for key in self._scores]
        outside = [self._outside.get(key, math.inf) for key in self._scores]
        return {
            "vectors": [None if vector is None else list(vector) for vector in vectors],
            "outside": [value if math.isfinite(value) else None for value in outside],
            "parents": self._rows(self._parents).tolist(),
            "children": self._rows(self._children).tolist(),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._vectors, self._outside = {}, {}
        for key, vector, outside in zip(self._scores, state["vectors"], state["outside"], strict=True):
            if vector is not None:
                self._vectors[key] = tuple(float(value) for value in vector)
                self._outside[key] = math.inf if outside is None else float(outside)
        self._parents, self._children = self._keys(state["parents"]), self._keys(state["children"])


def fronts(values: Array, outside: Array) -> NDArray[np.int64]:
    """Return the front index ``(n,)`` of each vector by non-dominated sorting (III.A, VI.A).

    Args:
        values: ``(n, m)``, finite, minimised.
        outside: violation of the limits ``(n,)``; smaller ones dominate.
    """
    at_most = np.ones((len(values), len(values)), np.bool_)
    for column in values.T:
        at_most &= column[:, None] <= column[None, :]
    less, equal = outside[:, None] < outside[None, :], outside[:, None] == outside[None, :]
    beats = less | (equal & at_most & ~at_most.T)
    front = np.full(len(values), -1, np.int64)
    beaten_by = beats.sum(0)
    level = 0
    while (unassigned := front < 0).any():
        first = unassigned & (beaten_by == 0)
        front[first] = level
        beaten_by -= beats[first].sum(0)
        level += 1
    return front


def crowding(values: Array) -> Array:
    """Return the crowding distance ``(n,)`` within one front (III.B)."""
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        if span > 0:
            distance[order[[0, -1]]] = np.inf
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def best_first(values: Array, outside: Array) -> NDArray[np.int64]:
    """Return indices ``(n,)`` sorted by front, then by decreasing crowding distance."""
    front = fronts(values, outside)
    distance = np.zeros(len(values))
    for level in np.unique(front):
        distance[front == level] = crowding(values[front == level])
    order: NDArray[np.int64] = np.lexsort((-distance, front))
    return order
