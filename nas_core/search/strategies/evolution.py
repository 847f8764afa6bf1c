"""Evolutionary search of HAT.

Wang et al., "HAT: Hardware-Aware Transformers for Efficient Natural Language Processing", ACL 2020, Algorithm 2; also
used by Jawahar et al., "Mixture-of-Supernets" (2023), A.4.4. Differences from the paper:

- Each architecture is evaluated once: at most 3,025 evaluations instead of 3,750.
- A population has no duplicates, and the last generation is evaluated.
- Architectures evaluated before the first population may be parents; failed evaluations may not.

As in the authors' code, children come from the parents; in the paper's listing, from the whole population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.proposals import row_keys
from nas_core.space.slots import Rows

_RANGES = {
    "iterations": Range(1),
    "population": Range(1),
    "parents": Range(0),
    "mutation_prob": Range(0, 1, exclude=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class EvolutionConfig:
    """Settings of HAT's evolution; defaults from the paper.

    Raises:
        ConfigError: there are more parents than architectures in the population.
    """

    iterations: int = 30
    """Number of generations, including the random first one."""
    population: int = 125
    """Size of each population: parents, and as many children by mutation as by crossover."""
    parents: int = 0
    """Number of best architectures that survive and have children; default: a fifth of the population."""
    mutation_prob: float = 0.3
    """Probability with which mutation redraws each gene, uniformly from its options."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        object.__setattr__(self, "parents", self.parents or max(1, round(self.population / 5)))
        if self.parents > self.population:
            raise ConfigError(f"parents is {self.parents}; expected at most the population, {self.population}")

    @property
    def children(self) -> int:
        """Number of children in each generation."""
        return self.population - self.parents


class HATEvolution(Strategy):
    """Evolutionary search of HAT within limits."""

    config: EvolutionConfig
    name: ClassVar[str] = "evolution"
    purpose: ClassVar[str] = "HAT's evolution: the best architecture under limits, by many evaluations"
    config_class: ClassVar[type[Any]] = EvolutionConfig
    budget_formula: ClassVar[str] = "{population} + ({iterations} - 1) x ({population} - {parents})"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._population: list[bytes] = []

    @property
    def budget(self) -> int:
        return self.config.population + (self.config.iterations - 1) * self.config.children

    @classmethod
    def settings_for(cls, evaluations: int) -> dict[str, Any]:
        """Return a population of ``evaluations / 24``, from 10 to 125 (HAT's), and as many iterations as possible."""
        config = EvolutionConfig(population=min(max(10, evaluations // 24), EvolutionConfig.population))
        return {"population": config.population, "iterations": 1 + (evaluations - config.population) // config.children}

    def _propose(self) -> Rows | None:
        if self.generation == self.config.iterations:
            return None
        parents = self._rows(self._parents())
        if len(parents):
            excluded, prob = set(row_keys(parents)), self.config.mutation_prob
            crossovers = self.config.children // 2 if len(parents) > 1 else 0
            mutations = self.config.children - self.config.children // 2
            mutants = self.proposals.take(lambda k: self._mutated(parents, k, prob), mutations, excluded)
            crossed = self.proposals.take(lambda k: self._crossed(parents, k), crossovers, excluded)
            rows = np.concatenate([parents, mutants, crossed])
        else:  # the first generation, or all evaluations failed
            rows = self.proposals.initial(self.rng, self.config.population, set(self._members))
        earlier = self._rows(() if self.generation else self._scores)
        self._population = list(
            dict.fromkeys(row_keys(np.concatenate([rows, earlier[self.proposals.feasible(earlier)]])))
        )
        return rows

    def _parents(self) -> list[bytes]:
        scored = [key for key in self._population if math.isfinite(self._scores[key])]
        return sorted(scored, key=self._scores.__getitem__)[: self.config.parents]
