"""Which genes matter: how strongly each orders architectures by the metric, and by what is limited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nas_core.search.constraints import Constraint
from nas_core.search.strategies.ranker import tau_importance
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

Importance = dict[str, dict[str, float]]
"""Metric -> gene -> |Kendall's tau| between the two, the largest first."""

PREDICTED = 1000
"""Random architectures that the importance for a limit is computed from; it is then known to about 0.02."""
LEAST = 1e-9
"""A gene below does not order architectures at all."""


def importance_of(space: SearchSpace, rows: Rows, values: NDArray[np.float64]) -> dict[str, float]:
    """Gene -> importance for values ``(n,)`` of rows ``(n, slots)``, the largest first; a gene of layers counts with
    its mean over those that exist."""
    taus = tau_importance(space.encode_rows(rows).astype(np.float64), values)
    names = [choice.name for choice in space.choices]
    return dict(sorted(zip(names, taus.tolist(), strict=True), key=lambda pair: -pair[1]))


def limit_importance(space: SearchSpace, constraints: Sequence[Constraint], seed: int) -> Importance:
    """Limited metric -> gene -> importance, from predictions for random architectures of the whole space: nothing is
    evaluated. They are drawn from a generator of their own, whatever the limits are."""
    found: Importance = {}
    for constraint in constraints:
        rows = space.sample_rows(np.random.default_rng([seed, PREDICTED]), PREDICTED)
        values = constraint.values(rows)
        known = np.isfinite(values)  # a predictor may refuse some architectures
        if known.any():
            found[constraint.name] = importance_of(space, rows[known], values[known])
    return found


def most_important(importance: Importance, keep: int, metrics: Iterable[str]) -> set[str]:
    """The ``keep`` genes that matter most to each of the metrics, all together."""
    tops = [list(importance.get(metric, {}).items())[:keep] for metric in metrics]
    return {gene for top in tops for gene, tau in top if tau > LEAST}
