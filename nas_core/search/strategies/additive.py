"""Additive models of a metric: a sum of effects of all options.

Letters: n architectures, V binary variables, one per option of each slot. A slot is a gene in one layer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas_core.search.constraints import Constraint
from nas_core.search.strategies.proposals import Proposals
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

Numbers = NDArray[np.float64]

PENALTIES = tuple(10.0**power for power in range(-4, 4))
"""Ridge penalties to select from by leave-one-out error."""


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
        indicators: Numbers = (rows[:, self.slot_of] == self.option_of).astype(np.float64)
        return indicators

    def steps(self) -> Numbers:
        """Return features ``(V, slots + genes)`` that encode the size of each option, per slot and per gene."""
        indices = np.arange(self.count)
        rows = np.zeros((self.count, self.slots.count), np.int16)
        rows[indices, self.slot_of] = self.option_of
        codes = self.slots.codes(rows)[indices, self.slot_of].astype(np.float64)
        columns = np.zeros((self.count, self.slots.count))
        for slot in range(self.slots.count):
            options = slice(self.starts[slot], self.starts[slot + 1])
            if width := np.ptp(codes[options]):
                columns[options, slot] = (codes[options] - codes[options].mean()) / width
        genes = [columns[:, gene].sum(1) for gene in self.slots.columns if gene.stop - gene.start > 1]
        return np.column_stack([columns, *genes])


def additive_effects(variables: Variables, rows: Rows, values: Numbers) -> Numbers:
    """Return the effects ``(V,)`` of the options on a metric, in its unit.

    They are fitted by ridge regression on the variables and on the sizes of the options.

    Args:
        rows: architectures ``(n, slots)``, n >= 2.
        values: metric ``(n,)``, not all equal.
    """
    basis = np.hstack([np.eye(variables.count), variables.steps()])
    features = variables.of(rows) @ basis
    scale = float(values.std())
    left, singular, right = np.linalg.svd(features - features.mean(0), full_matrices=False)
    scaled = (values - values.mean()) / scale
    target = left.T @ scaled
    errors = []
    for penalty in PENALTIES:
        shrinkage = singular**2 / (singular**2 + penalty)
        leverage = np.minimum((left**2) @ shrinkage + 1 / len(values), 0.999)
        errors.append(float((((scaled - left @ (shrinkage * target)) / (1 - leverage)) ** 2).mean()))
    shrunk = singular / (singular**2 + PENALTIES[int(np.argmin(errors))])
    effects: Numbers = scale * (basis @ (right.T @ (shrunk * target)))
    return effects


def estimate_constraint(constraint: Constraint, space: SearchSpace, rows: Rows) -> Constraint:
    """Replace a slow constraint's predictor by an additive model of its predictions for ``rows``.

    If all predictions are equal, every architecture meets the limit.
    """
    values = constraint.values(rows)
    finite = np.isfinite(values)
    rows, values = rows[finite], values[finite]
    variables = Variables(space)
    effects, constant = np.zeros(variables.count), 0.0
    if len(np.unique(values)) > 1:
        effects = additive_effects(variables, rows, values)
        constant = float(values.mean() - (variables.of(rows) @ effects).mean())
    return replace(constraint, predict_rows=lambda rows: constant + variables.of(rows) @ effects, batch_size=0)


def fast_proposals(proposals: Proposals, rows: Rows) -> Proposals:
    """Return proposals whose slow constraints are replaced by :func:`estimate_constraint`."""
    limits = proposals.constraints
    if not any(limit.batch_size for limit in limits):
        return proposals
    fast = [estimate_constraint(limit, proposals.space, rows) if limit.batch_size else limit for limit in limits]
    return Proposals(proposals.space, fast)
