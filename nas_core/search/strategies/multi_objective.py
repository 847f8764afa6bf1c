"""NSGA-II: evolution of a Pareto front.

Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE TEC 6(2), 2002. Differences:

- Children come from mutation or crossover as in HAT's evolution, and no architecture is proposed twice.
- Architectures predicted to violate a limit are not proposed; violations found by evaluation are handled as in the
  paper.
- Failed evaluations leave the population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.search.strategies.objectives import MultiObjectiveStrategy, fronts
from nas_core.search.strategies.proposals import row_keys
from nas_core.space.slots import Rows

Array = NDArray[np.float64]
_RANGES = {
    "iterations": Range(1),
    "population": Range(2),
    "mutation_prob": Range(0, 1, exclude=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class MultiObjectiveConfig:
    """Settings of NSGA-II; the defaults evaluate as many architectures as HAT's evolution."""

    iterations: int = 30
    """Number of generations, including the random first one."""
    population: int = 100
    """Number of architectures that survive and have children, and number of children, half of them by mutation."""
    mutation_prob: float = 0.1
    """Probability with which mutation redraws each gene, uniformly from its options."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)


class MultiObjectiveEvolution(MultiObjectiveStrategy):
    """NSGA-II with hard constraints; the module lists differences to the paper."""

    config: MultiObjectiveConfig
    name: ClassVar[str] = "multi-objective"
    purpose: ClassVar[str] = "NSGA-II: the whole front of several metrics in one search"
    config_class: ClassVar[type[Any]] = MultiObjectiveConfig
    budget_formula: ClassVar[str] = "{population} x {iterations}"

    _parents: Sequence[bytes] = ()
    _children: Sequence[bytes] = ()

    @property
    def budget(self) -> int:
        return self.config.population * self.config.iterations

    @classmethod
    def settings_for(cls, evaluations: int) -> dict[str, Any]:
        """Return a population of a tenth of the evaluations, from 5 to 100."""
        population = min(max(5, evaluations // 10), MultiObjectiveConfig.population)
        return {"population": population, "iterations": evaluations // population}

    def _propose(self) -> Rows | None:
        if self.generation == self.config.iterations:
            return None
        pool = [key for key in (*self._parents, *self._children) if key in self._vectors]
        if pool:
            self._parents = [pool[index] for index in best_first(*self._vectors_of(pool))[: self.config.population]]
            rows = np.concatenate(self._offspring(self._rows(self._parents)))
        else:  # the first generation, or all evaluations failed
            rows = self.proposals.initial(self.rng, self.config.population, set(self._members))
        before = [] if self.generation else list(self._vectors)
        self._children = list(dict.fromkeys([*row_keys(rows), *before]))
        return rows

    def _offspring(self, parents: Rows) -> tuple[Rows, Rows]:
        excluded, count, crossovers = set(self._members), len(parents), self.config.population // 2

        def winners(k: int) -> Rows:
            selected: Rows = parents[self.rng.integers(count, size=(2, k)).min(0)]  # parents are sorted
            return selected

        def mutated(k: int) -> Rows:
            return self.space.mutate_rows(winners(k), self.config.mutation_prob, self.rng)

        def crossed(k: int) -> Rows:
            return self.space.crossover_rows(winners(k), winners(k), self.rng)

        mutants = self.proposals.take(mutated, self.config.population - crossovers, excluded)
        return mutants, self.proposals.take(crossed, crossovers, excluded)


def crowding(values: Array) -> Array:
    """Return the crowding distance ``(n,)`` of the metrics ``(n, m)`` of one front (NSGA-II, III.B)."""
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        if span > 0:
            distance[order[[0, -1]]] = np.inf
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def best_first(values: Array, outside: Array) -> NDArray[np.int64]:
    """Return indices ``(n,)`` sorted by front (see :func:`fronts`), then by decreasing crowding distance."""
    front = fronts(values, outside)
    distance = np.zeros(len(values))
    for level in np.unique(front):
        distance[front == level] = crowding(values[front == level])
    order: NDArray[np.int64] = np.lexsort((-distance, front))
    return order
