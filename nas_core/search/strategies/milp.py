"""Search by integer programs on an additive model of the metric.

After Molchanov et al., "LANA: Latency Aware Network Acceleration", ECCV 2022, and Bercovich et al., "Puzzle:
Distillation-Based NAS for Inference-Optimized LLMs", 2024. Differences:

- Costs are linearised around the best architecture; the error at each solution corrects the next program's limits.
- Effects are fitted to all results after each round. Some proposals use effects drawn from the posterior (Baptista and
  Poloczek, "Bayesian Optimization of Combinatorial Structures", ICML 2018).
- The first evaluations change one gene of the largest architecture within the limits whose genes are about equally
  reduced.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.search.strategies.additive import AdditiveFit, LinearCosts, Variables
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.proposals import row_keys
from nas_core.space.slots import ABSENT, Rows

_log = logging.getLogger(__name__)

Numbers = NDArray[np.float64]

SHARES = 257
"""Number of architectures from the largest to the smallest that are tried for the first evaluations."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Golden ratio; its multiples modulo 1 are spaced evenly."""
BAD = 0.5
"""Values are clipped at best + ``BAD`` * (median - best) before a fit."""
MUTATED = 0.1
"""Mutation probability per gene for children that fill up the proposals."""
DIGITS = 9
"""Decimals of coefficients scaled to at most 1."""


_RANGES = {
    "evaluations": Range(2),
    "single_changes": Range(0),
    "per_round": Range(1),
    "explore": Range(0, 1),
    "solves": Range(1),
    "nodes": Range(1),
    "gap": Range(0, 1),
}


@dataclass(frozen=True, kw_only=True)
class MILPConfig:
    """Settings of the search by integer programs.

    Raises:
        ConfigError: single_changes is not smaller than evaluations.
    """

    evaluations: int = 300
    """Largest number of evaluated architectures."""
    single_changes: int = 60
    """Largest number of first evaluations that change one gene; those that reduce costs most come first."""
    per_round: int = 10
    """Number of proposals after each fit of the additive model."""
    explore: float = 0.6
    """Fraction of proposals that use effects drawn from the posterior."""
    solves: int = 8
    """Largest number of integer programs per proposal, each with corrected limits."""
    nodes: int = 500
    """Largest number of branch-and-bound nodes per program."""
    gap: float = 0.01
    """Relative optimality gap of a program; 0 is slower."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        if self.single_changes >= self.evaluations:
            raise ConfigError(
                f"single_changes is {self.single_changes}; expected fewer than evaluations, which is {self.evaluations}"
            )


class Program:
    """Integer program: one option per gene and layer with the smallest sum of effects.

    Args:
        nodes, gap: see :class:`MILPConfig`.
    """

    def __init__(self, variables: Variables, nodes: int, gap: float) -> None:
        self.variables, self.nodes, self.gap = variables, nodes, gap
        self._one, self._sums = self._structure()

    def _structure(self) -> tuple[Numbers, Numbers]:
        # coefficients (slots, V) and right-hand sides (slots,): one option per present slot
        variables, slots = self.variables, self.variables.slots
        coefficients = np.zeros((slots.count, variables.count))
        coefficients[variables.slot_of, np.arange(variables.count)] = 1.0
        sums = np.ones(slots.count)
        for choice, columns in zip(slots.choices, slots.columns, strict=True):
            if choice.per is None:
                continue
            start = variables.starts[slots.depth_column(choice.per)]
            for layer, slot in enumerate(range(columns.start, columns.stop)):
                sums[slot] = 0.0
                for index, depth in enumerate(variables.space.choice(choice.per).options[0]):
                    coefficients[slot, start + index] -= float(int(depth) > layer)
        return coefficients, sums

    def solve(self, parts: Numbers, costs: Numbers, budgets: Numbers, without: Sequence[Numbers]) -> Rows | None:
        """Return the architecture ``(1, slots)`` with the smallest sum of effects; None if none meets the budgets.

        Args:
            parts: effects on the metric ``(V,)``.
            costs: effects on the costs ``(limits, V)``.
            budgets: largest sums of costs ``(limits,)``.
            without: variables ``(V,)`` of excluded architectures.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # takes as long to import as torch

        scale = np.maximum(np.abs(costs).max(1, initial=0.0), 1e-12)
        rows, low, high = [self._one], [self._sums], [self._sums]
        if len(costs):
            rows.append(np.round(costs / scale[:, None], DIGITS))
            low.append(np.full(len(costs), -np.inf))
            high.append(budgets / scale)
        if without:
            cuts = np.array(without)
            rows.append(cuts)
            low.append(np.full(len(cuts), -np.inf))
            high.append(cuts.sum(1) - 1.0)
        scale_parts = float(np.abs(parts).max(initial=0.0)) or 1.0
        solution = milp(
            np.round(parts / scale_parts, DIGITS),
            integrality=np.ones(self.variables.count),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.concatenate(rows), np.concatenate(low), np.concatenate(high)),
            options={"node_limit": self.nodes, "mip_rel_gap": self.gap},
        )
        return None if solution.x is None else self.variables.row(solution.x)


class MILP(Strategy):
    """Search within limits by integer programs on an additive model of the metric."""

    config: MILPConfig
    name: ClassVar[str] = "milp"
    purpose: ClassVar[str] = "integer programs over scored single changes: layers chosen one by one"
    config_class: ClassVar[type[Any]] = MILPConfig
    budget_formula: ClassVar[str] = "{evaluations}, of them {single_changes} or fewer"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._variables = Variables(self.space)
        self._program = Program(self._variables, self.config.nodes, self.config.gap)
        self._reference: list[int] = []
        self._counts = {"single_changes": 0, "single_changes_within_limits": 0, "programs": 0, "beyond_limits": 0}

    @property
    def budget(self) -> int:
        return self.config.evaluations

    @classmethod
    def settings_for(cls, evaluations: int) -> dict[str, Any]:
        return {"evaluations": evaluations, "single_changes": min(evaluations // 5, MILPConfig.single_changes)}

    def insight(self) -> dict[str, Any]:
        return dict(self._counts) if self.generation else {}

    def _propose(self) -> Rows | None:
        if self.generation == 0:
            return self._single_changes()
        count = min(self.config.per_round, self.config.evaluations - len(self._members))
        if count <= 0:
            return None
        rows, values = self._evaluated()
        if len(np.unique(values)) < 2:  # too few results to fit
            return self.proposals.initial(self.rng, count, set(self._members))
        return self._solved(rows, values, count)

    # -- single changes ----------------------------------------------------------------------------------------------

    def _single_changes(self) -> Rows:
        reference = self._find_reference()
        self._reference = [int(option) for option in reference[0]]
        slots, variables = self.space.slots, self._variables
        row = slots.canonical(reference)
        changed = np.repeat(reference, variables.count, axis=0)
        changed[np.arange(variables.count), variables.slot_of] = variables.option_of
        unchanged = reference[0, variables.slot_of] == variables.option_of
        apart = ~unchanged & (row[0, variables.slot_of] != ABSENT)
        rows = slots.canonical(changed[apart])
        saved = np.zeros(len(rows))
        for constraint in self.proposals.constraints:
            values = np.nan_to_num(constraint.values(rows), nan=np.inf)
            saved += (float(constraint.values(row)[0]) - values) / constraint.limit
        if not self.proposals.constraints:
            saved = self._smaller(row, rows)
        order = np.argsort(-saved, kind="stable")
        within = rows[order][self.proposals.feasible(rows[order])]
        chosen = within[: min(self.config.single_changes, self.config.evaluations - 1)]
        self._counts |= {"single_changes": len(chosen), "single_changes_within_limits": len(within)}
        _log.info(
            "evaluating %d of %d changes of one gene that meet the limits%s",
            len(chosen), len(within), ", those that reduce costs most" if len(chosen) < len(within) else "",
        )  # fmt: skip
        return np.concatenate([row, chosen])

    def _find_reference(self) -> Rows:
        slots = self.space.slots
        ordered = [np.argsort([choice.code(option) for option in options], kind="stable")
                   for choice in slots.choices for options in choice.options]  # fmt: skip
        shares = np.linspace(1.0, 0.0, SHARES)
        turn = np.arange(len(ordered)) * GOLDEN % 1.0  # genes with as many options do not all shrink at once
        places = [np.floor(shares * (len(order) - 1) + after) for order, after in zip(ordered, turn, strict=True)]
        columns = [order[place.astype(int)] for order, place in zip(ordered, places, strict=True)]
        candidates = np.stack(columns, 1).astype(np.int16)
        within = np.flatnonzero(self.proposals.feasible(slots.canonical(candidates)))
        if len(within):
            return candidates[within[:1]]
        return self._filled(self.proposals.initial(self.rng, 1, set()), candidates[:1])

    def _filled(self, row: Rows, by: Rows) -> Rows:
        return np.where(row == ABSENT, by, row).astype(np.int16)

    def _smaller(self, row: Rows, rows: Rows) -> Numbers:
        codes = self.space.slots.codes(np.concatenate([row, rows])).astype(np.float64)
        largest = np.maximum(np.abs(self.space.slots.codes(self.space.slots.extreme(np.argmax)[None])[0]), 1e-9)
        smaller: Numbers = ((codes[:1] - codes[1:]) / largest).sum(1)
        return smaller

    # -- integer programs --------------------------------------------------------------------------------------------

    def _fitted(self, rows: Rows, values: Numbers) -> AdditiveFit:
        best = values.min()
        worst = best + BAD * (np.median(values) - best)
        return AdditiveFit(self._variables, rows, np.minimum(values, worst) if worst > best else values)

    def _solved(self, rows: Rows, values: Numbers, count: int) -> Rows:
        fit = self._fitted(rows, values)
        reference = np.array([self._reference], np.int16)
        good = rows[self.proposals.feasible(rows)]
        anchor = self._filled(self._best_of(good), reference) if len(good) else reference
        costs = LinearCosts.around(self._variables, anchor, self.proposals.constraints)
        limits = np.array([constraint.limit for constraint in self.proposals.constraints])
        evaluated = self._rows(sorted({*self._members, *self._scores}))
        taken = set(row_keys(evaluated))
        drawn = round(self.config.explore * count)
        solutions, budgets = list[Rows](), limits.copy()
        for place in range(count):
            parts = fit.parts if place < count - drawn else fit.drawn(self.rng)
            row, budgets = self._proposal(parts, costs, limits, budgets, taken)
            if row is not None:
                solutions.append(row)
        chosen = np.concatenate([self.space.slots.empty(), *solutions])
        return self._with_children(chosen, count, taken, self.config.per_round, MUTATED)

    def _best_of(self, rows: Rows) -> Rows:
        keys = row_keys(rows)
        return rows[[min(range(len(keys)), key=lambda index: (self._scores[keys[index]], keys[index]))]]

    def _proposal(
        self,
        parts: Numbers,
        costs: LinearCosts,
        limits: Numbers,
        budgets: Numbers,
        taken: set[bytes],
    ) -> tuple[Rows | None, Numbers]:
        """Return a new architecture within the limits, or None, and the corrected budgets; add its key to ``taken``."""
        without: list[Numbers] = []  # of this call: excluding all evaluated architectures is ten times slower
        for _ in range(self.config.solves):
            row = self._program.solve(parts, costs.parts, budgets - costs.constant, without)
            self._counts["programs"] += 1
            if row is None:
                if np.array_equal(budgets, limits):
                    return None, budgets
                budgets = limits.copy()
                continue
            chosen = self._variables.of(row)[0]
            without.append(chosen)
            true = np.array([float(constraint.values(row)[0]) for constraint in self.proposals.constraints])
            off = true - costs.values(chosen)
            budgets = np.where(np.isfinite(off), limits - off, budgets)
            key = row_keys(row)[0]
            if not (true <= limits).all():
                self._counts["beyond_limits"] += 1
            elif key not in taken:
                taken.add(key)
                return row, budgets
        return None, budgets
