"""Additive models of a metric: a sum of effects of all options.

Letters: n architectures, V binary variables, one per option of each slot. A slot is a gene in one layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nas_core.search.constraints import Constraint
from nas_core.search.strategies.proposals import Proposals
from nas_core.space import SearchSpace
from nas_core.space.slots import ABSENT, Rows

Numbers = NDArray[np.float64]

PENALTIES = tuple(10.0**power for power in range(-4, 4))
"""Ridge penalties to select from by leave-one-out error."""
UNKNOWN_COST = 10.0
"""Cost of an architecture without a prediction, as a multiple of the limit."""


class Variables:
    """Binary variables for the options of all slots (gene and layer): 1 if an architecture has the option."""

    def __init__(self, space: SearchSpace) -> None:
        self.space, self.slots = space, space.slots
        self.starts = np.concatenate([[0], np.cumsum(self.slots.sizes)])
        self.count = int(self.starts[-1])
        self.slot_of = np.repeat(np.arange(self.slots.count), self.slots.sizes)
        self.option_of = np.arange(self.count) - self.starts[self.slot_of]

    def of(self, rows: Rows) -> Numbers:
        """Return the variables ``(n, V)`` of architectures ``(n, slots)``."""
        chosen: Numbers = (rows[:, self.slot_of] == self.option_of).astype(np.float64)
        return chosen

    def row(self, values: Numbers) -> Rows:
        """Return the architecture ``(1, slots)`` with the variables ``(V,)``."""
        row = np.full((1, self.slots.count), ABSENT, np.int16)
        chosen = np.flatnonzero(values > 0.5)
        row[0, self.slot_of[chosen]] = self.option_of[chosen]
        return self.slots.canonical(np.where(row == ABSENT, 0, row).astype(np.int16))

    def steps(self) -> Numbers:
        """Return features ``(V, slots + genes)`` that encode the size of each option, per slot and per gene."""
        places = np.arange(self.count)
        rows = np.zeros((self.count, self.slots.count), np.int16)
        rows[places, self.slot_of] = self.option_of
        codes = self.slots.codes(rows)[places, self.slot_of].astype(np.float64)
        columns = np.zeros((self.count, self.slots.count))
        for slot in range(self.slots.count):
            options = slice(self.starts[slot], self.starts[slot + 1])
            if width := np.ptp(codes[options]):
                columns[options, slot] = (codes[options] - codes[options].mean()) / width
        genes = [columns[:, where].sum(1) for where in self.slots.columns if where.stop - where.start > 1]
        return np.column_stack([columns, *genes])


class AdditiveFit:
    """Ridge regression of a metric on the variables and on the sizes of the options.

    Args:
        rows: architectures ``(n, slots)``, n >= 2.
        values: metric ``(n,)``, not all equal.
    """

    def __init__(self, variables: Variables, rows: Rows, values: Numbers) -> None:
        steps = variables.steps()
        self._back = np.hstack([np.eye(variables.count), steps])
        features = variables.of(rows) @ self._back
        self._scale = float(values.std())
        left, self._singular, right = np.linalg.svd(features - features.mean(0), full_matrices=False)
        self._right = right.T
        target = left.T @ ((values - values.mean()) / self._scale)
        self._penalty, self._noise = self._chosen(left, (values - values.mean()) / self._scale, target)
        shrunk = self._singular / (self._singular**2 + self._penalty)
        self._mean = self._right @ (shrunk * target)

    def _chosen(self, left: Numbers, values: Numbers, target: Numbers) -> tuple[float, float]:
        errors = []
        for penalty in PENALTIES:
            shrinkage = self._singular**2 / (self._singular**2 + penalty)
            leverage = np.minimum((left**2) @ shrinkage + 1 / len(values), 0.999)
            errors.append(float((((values - left @ (shrinkage * target)) / (1 - leverage)) ** 2).mean()))
        best = int(np.argmin(errors))
        return PENALTIES[best], float(np.sqrt(errors[best]))

    @property
    def parts(self) -> Numbers:
        """Effects ``(V,)`` of the options on the metric, in its unit."""
        parts: Numbers = self._scale * (self._back @ self._mean)
        return parts

    def drawn(self, rng: np.random.Generator) -> Numbers:
        """Return a random draw of the effects ``(V,)`` from their posterior."""
        deviation = self._noise / np.sqrt(self._singular**2 + self._penalty)
        prior = rng.standard_normal(len(self._mean)) * (self._noise / np.sqrt(self._penalty))
        inside = self._right @ (self._right.T @ prior)  # the prior remains in directions without results
        fitted = self._right @ (rng.standard_normal(len(deviation)) * deviation)
        parts: Numbers = self._scale * (self._back @ (self._mean + fitted + prior - inside))
        return parts


def estimated(constraint: Constraint, space: SearchSpace, rows: Rows) -> Constraint:
    """Replace a slow constraint's predictor by an additive model of its predictions for ``rows``.

    If all predictions are equal, every architecture meets the limit.
    """
    values = constraint.values(rows)
    finite = np.isfinite(values)
    rows, values = rows[finite], values[finite]
    variables = Variables(space)
    parts, constant = np.zeros(variables.count), 0.0
    if len(np.unique(values)) > 1:
        parts = AdditiveFit(variables, rows, values).parts
        constant = float(values.mean() - (variables.of(rows) @ parts).mean())
    return replace(constraint, predict_rows=lambda some: constant + variables.of(some) @ parts, together=0)


def fast_proposals(proposals: Proposals, rows: Rows) -> Proposals:
    """Return proposals whose slow constraints are replaced by :func:`estimated`."""
    limits = proposals.constraints
    if not any(limit.together for limit in limits):
        return proposals
    fast = [estimated(limit, proposals.space, rows) if limit.together else limit for limit in limits]
    return Proposals(proposals.space, fast, proposals.max_tries)


@dataclass(frozen=True)
class LinearCosts:
    """Linear approximation of the limited metrics around a reference architecture, exact for changes of one gene."""

    parts: Numbers
    """Effects ``(limits, V)`` in the metrics' units; 0 for options of the reference architecture."""
    constant: Numbers
    """Metrics ``(limits,)`` of the reference."""

    @classmethod
    def around(cls, variables: Variables, anchor: Rows, constraints: Sequence[Constraint]) -> LinearCosts:
        """Fit to predictions for all changes of one gene; options of absent layers are changed at the greatest depth.

        Args:
            anchor: reference ``(1, slots)`` with an option in every slot, absent layers included.
        """
        slots = variables.slots
        row = slots.canonical(anchor)
        deepest = anchor.copy()
        for gene in sorted(slots.depth_genes):
            column = slots.depth_column(gene)
            deepest[0, column] = int(np.argmax(variables.space.choice(gene).options[0]))
        changed = np.repeat(anchor, variables.count, axis=0)
        absent = row[0, variables.slot_of] == ABSENT
        changed[absent] = deepest
        changed[np.arange(variables.count), variables.slot_of] = variables.option_of
        rows = np.concatenate([row, slots.canonical(deepest), slots.canonical(changed)])
        parts, constants = [], []
        for constraint in constraints:
            values = np.nan_to_num(constraint.values(rows), nan=UNKNOWN_COST * constraint.limit, posinf=np.inf)
            values = np.minimum(values, UNKNOWN_COST * constraint.limit)
            parts.append(values[2:] - np.where(absent, values[1], values[0]))
            constants.append(values[0])
        return cls(np.array(parts).reshape(-1, variables.count), np.array(constants))

    def values(self, chosen: Numbers) -> Numbers:
        """Return the approximated metrics ``(limits,)`` for variables ``(V,)``."""
        result: Numbers = self.constant + self.parts @ chosen
        return result
