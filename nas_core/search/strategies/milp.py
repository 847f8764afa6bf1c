"""Exact proposals: single changes are scored one by one, an integer program combines them, the supernet re-ranks.

The way of Molchanov et al., "LANA: Latency Aware Network Acceleration", ECCV 2022, and of Bercovich et al., "Puzzle:
Distillation-Based NAS for Inference-Optimized LLMs", 2024: the loss of a network is taken for the sum of what each
choice of each layer costs alone, which makes the best network under limits an integer program. Where we differ:

- Costs do not add up, so they are linearised around the best architecture known, by each metric's own model of whole
  networks. The truth is asked about each solution; by how much the linear costs were wrong there corrects the budget,
  and the program is solved anew, ``solves`` times at most.
- Losses do not add up either. Every proposal is evaluated, and after each round the parts are fitted anew to all
  results by ridge regression. A share of the proposals is best in parts drawn from the posterior instead, as in
  Baptista and Poloczek, "Bayesian Optimization of Combinatorial Structures", ICML 2018.
- The reference, from which single changes are scored, is the largest network only where that meets the limits; else
  the largest that does of networks whose genes all have shrunk by about the same share of their options.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.search.strategies.additive import AdditiveFit, LinearCosts, Variables
from nas_core.search.strategies.informed import InformedStrategy
from nas_core.search.strategies.milp_config import MILPConfig
from nas_core.search.strategies.program import Program
from nas_core.search.strategies.proposals import row_keys
from nas_core.space.slots import ABSENT, Rows

_log = logging.getLogger(__name__)

Numbers = NDArray[np.float64]

SHARES = 257
"""Shares of the options, from all to the smallest alone, at which a reference within the limits is looked for."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Steps of this share of a circle never come close to where they were."""
BAD = 0.5
"""What is farther from the best result than this share of the median's distance counts as being so far: the parts are
wanted where good architectures are, and one that learned nothing would decide them all."""
MUTATED = 0.1
"""What programs do not give is filled with children of the best, each gene replaced with this probability."""


class MILP(InformedStrategy):
    """Search by integer programs with hard constraints, behind ask/tell; the module lists what is ours."""

    config: MILPConfig
    name: ClassVar[str] = "milp"
    purpose: ClassVar[str] = "integer programs over scored single changes: layers chosen one by one"
    config_class: ClassVar[type[Any]] = MILPConfig
    budget_told: ClassVar[str] = "{evaluations}, of them {single_changes} or fewer"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._variables = Variables(self.space)
        self._program = Program(self._variables, self.config.nodes, self.config.gap)
        self._reference: list[int] = []
        self._counts = {"single_changes": 0, "single_changes_within_limits": 0, "programs": 0, "beyond_limits": 0}

    @property
    def budget(self) -> int:
        return self.config.evaluations

    def insight(self) -> dict[str, Any]:
        return dict(self._counts) if self.generation else {}

    def _propose(self) -> Rows | None:
        if self.generation == 0:
            return self._single_changes()
        count = min(self.config.per_round, self.config.evaluations - len(self._members))
        if count <= 0:
            return None
        rows, values = self._evaluated()
        if len(np.unique(values)) < 2:  # nothing to learn from yet
            return self.proposals.initial(self.rng, count, set(self._members))
        return self._solved(rows, values, count)

    # -- single changes ----------------------------------------------------------------------------------------------

    def _single_changes(self) -> Rows:
        """The reference, then what differs from it in one gene, those first that save most."""
        reference = self._found_reference()
        self._reference = [int(option) for option in reference[0]]
        slots, variables = self.space.slots, self._variables
        here = slots.canonical(reference)
        changed = np.repeat(reference, variables.count, axis=0)
        changed[np.arange(variables.count), variables.slot_of] = variables.option_of
        own = reference[0, variables.slot_of] == variables.option_of
        apart = ~own & (here[0, variables.slot_of] != ABSENT)
        rows = slots.canonical(changed[apart])
        saved = np.zeros(len(rows))
        for constraint in self.proposals.constraints:
            values = np.nan_to_num(constraint.values(rows), nan=np.inf)
            saved += (float(constraint.values(here)[0]) - values) / constraint.limit
        if not self.proposals.constraints:
            saved = self._smaller(here, rows)
        order = np.argsort(-saved, kind="stable")
        within = rows[order][self.proposals.feasible(rows[order])]
        chosen = within[: min(self.config.single_changes, self.config.evaluations - 1)]
        self._counts |= {"single_changes": len(chosen), "single_changes_within_limits": len(within)}
        _log.info(
            "%d of %d single changes within the limits are evaluated%s",
            len(chosen), len(within), ", those that save most" if len(chosen) < len(within) else "",
        )  # fmt: skip
        return np.concatenate([here, chosen])

    def _found_reference(self) -> Rows:
        """The largest architecture within the limits of those with about the same share of each gene's options, with
        an option in every slot ``(1, slots)``.

        Raises:
            InfeasibleError: nothing meets the limits.
        """
        slots = self.space.slots
        ordered = [np.argsort([choice.code(option) for option in options], kind="stable")
                   for choice in slots.choices for options in choice.options]  # fmt: skip
        shares = np.linspace(1.0, 0.0, SHARES)
        turn = np.arange(len(ordered)) * GOLDEN % 1.0  # genes with as many options do not all shrink at once
        places = [np.floor(shares * (len(order) - 1) + after) for order, after in zip(ordered, turn, strict=True)]
        columns = [order[place.astype(int)] for order, place in zip(ordered, places, strict=True)]
        whole = np.stack(columns, 1).astype(np.int16)
        within = np.flatnonzero(self.proposals.feasible(slots.canonical(whole)))
        if len(within):
            return whole[within[:1]]
        return self._filled(self.proposals.initial(self.rng, 1, set()), whole[:1])

    def _filled(self, row: Rows, by: Rows) -> Rows:
        """The row with an option in every slot, those of ``by`` where a layer does not exist."""
        return np.where(row == ABSENT, by, row).astype(np.int16)

    def _smaller(self, here: Rows, rows: Rows) -> Numbers:
        """How much smaller the rows are without limits that would tell: the sum of what their options have shrunk by,
        each as a share of its gene's largest."""
        codes = self.space.slots.codes(np.concatenate([here, rows])).astype(np.float64)
        largest = np.maximum(np.abs(self.space.slots.codes(self.space.slots.extreme(np.argmax)[None])[0]), 1e-9)
        smaller: Numbers = ((codes[:1] - codes[1:]) / largest).sum(1)
        return smaller

    # -- integer programs --------------------------------------------------------------------------------------------

    def _fitted(self, rows: Rows, values: Numbers) -> AdditiveFit:
        best = values.min()
        worst = best + BAD * (np.median(values) - best)
        return AdditiveFit(self._variables, rows, np.minimum(values, worst) if worst > best else values)

    def _solved(self, rows: Rows, values: Numbers, count: int) -> Rows:
        """The next proposals: solutions of integer programs, and where they do not suffice, children of the best."""
        fit = self._fitted(rows, values)
        reference = np.array([self._reference], np.int16)
        good = rows[self.proposals.feasible(rows)]
        anchor = self._filled(self._best_of(good), reference) if len(good) else reference
        costs = LinearCosts.around(self._variables, anchor, self.proposals.constraints)
        limits = np.array([constraint.limit for constraint in self.proposals.constraints])
        known = self._rows(sorted({*self._members, *self._scores}))
        taken = set(row_keys(known))
        drawn = round(self.config.explore * count)
        found, budgets = list[Rows](), limits.copy()
        for place in range(count):
            parts = fit.parts if place < count - drawn else fit.drawn(self.rng)
            row, budgets = self._proposal(parts, costs, limits, budgets, taken)
            if row is not None:
                found.append(row)
        chosen = np.concatenate([self.space.slots.empty(), *found])
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
        """A new architecture within the limits, and the budgets as its error corrects them; None if none was found.

        The architecture is added to ``taken``.
        """
        without: list[Numbers] = []  # few: programs that have to leave out all that is known take ten times as long
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

    def _state(self) -> dict[str, Any]:
        return {"reference": self._reference, "counts": dict(self._counts)}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reference = [int(option) for option in state["reference"]]
        self._counts = {name: int(state["counts"][name]) for name in self._counts}
