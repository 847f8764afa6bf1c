"""Integer programs over the options of a search space, solved exactly: the best sum of parts within budgets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nas_core.search.strategies.additive import Variables
from nas_core.space.slots import Rows

Numbers = NDArray[np.float64]

DIGITS = 9
"""Decimals of coefficients, of which the largest is 1: noise below the solver's tolerance only confuses it."""


class Program:
    """Chooses an option of each gene so that the sum of their parts is least, by ``scipy.optimize.milp``.

    A gene of a layer has an option exactly where the depth gene says that the layer exists.

    Args:
        nodes: of branch and bound at most, for each solution.
        gap: how far a solution may be from the best one, as a share of its sum.
    """

    def __init__(self, variables: Variables, nodes: int, gap: float) -> None:
        self.variables, self.nodes, self.gap = variables, nodes, gap
        self._one, self._sums = self._structure()

    def _structure(self) -> tuple[Numbers, Numbers]:
        """Coefficients ``(slots, V)`` and right sides ``(slots,)`` of: as many options as the slot has layers."""
        variables, slots = self.variables, self.variables.slots
        one = np.zeros((slots.count, variables.count))
        one[variables.slot_of, np.arange(variables.count)] = 1.0
        sums = np.ones(slots.count)
        for choice, columns in zip(slots.choices, slots.columns, strict=True):
            if choice.per is None:
                continue
            start = variables.starts[slots.depth_column(choice.per)]
            for layer, slot in enumerate(range(columns.start, columns.stop)):
                sums[slot] = 0.0
                for index, depth in enumerate(variables.space.choice(choice.per).options[0]):
                    one[slot, start + index] -= float(int(depth) > layer)
        return one, sums

    def solve(self, parts: Numbers, costs: Numbers, budgets: Numbers, without: Sequence[Numbers]) -> Rows | None:
        """The row ``(1, slots)`` with the least sum of ``parts`` (V,); None if nothing is within the budgets.

        Args:
            costs: ``(limits, V)``. budgets: ``(limits,)``, the most that each may sum to.
            without: variables ``(V,)`` of architectures that are not looked for.
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
        spread = float(np.abs(parts).max(initial=0.0)) or 1.0
        found = milp(
            np.round(parts / spread, DIGITS),
            integrality=np.ones(self.variables.count),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.concatenate(rows), np.concatenate(low), np.concatenate(high)),
            options={"node_limit": self.nodes, "mip_rel_gap": self.gap},
        )
        return None if found.x is None else self.variables.row(found.x)
