"""Example of a search strategy: hill climbing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nas_core.checks import Range, check_fields
from nas_core.search import Strategy


@dataclass(frozen=True, kw_only=True)
class HillClimbingConfig:
    """Settings of hill climbing; each field is an option of the command line and of NNI."""

    steps: int = 20
    """Number of steps."""
    neighbours: int = 16
    """Number of architectures per step, and at the start."""
    mutation_prob: float = 0.1
    """Probability that a gene is mutated, above 0 and at most 1."""

    def __post_init__(self) -> None:
        probability = Range(0, 1, exclude=(0,))
        check_fields(self, ranges={"steps": Range(0), "neighbours": Range(1), "mutation_prob": probability})


class HillClimbing(Strategy):
    """Strategy that evaluates mutations of the best architecture so far."""

    name = "hill-climbing"
    purpose = "hill climbing: quick where neighbours are alike"
    config_class = HillClimbingConfig
    budget_formula = "({steps} + 1) x {neighbours}"
    config: HillClimbingConfig

    @property
    def budget(self) -> int:
        return (self.config.steps + 1) * self.config.neighbours

    def _propose(self) -> Any:
        if self.generation > self.config.steps:
            return None
        best, evaluated = self.best(), set(self._members)
        if best is None:  # no successful evaluation yet
            return self.proposals.initial(self.rng, self.config.neighbours, evaluated)
        best_row = self.space.rows([best[0]])

        def mutate_best(count: int) -> Any:
            return self.space.mutate_rows(np.repeat(best_row, count, axis=0), self.config.mutation_prob, self.rng)

        return self.proposals.take(mutate_best, self.config.neighbours, evaluated)
