"""Splits of a table into training networks and evaluation networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.accuracy.tables import AccuracyBenchmark, Table
from nas_core.graph import Graphs

Array = NDArray[np.float64]
LOOKED_AT = 5000
"""Number of networks outside the training set for coverage and for the choice of settings."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Networks outside the training set."""

    graphs: Graphs
    observed: Array
    """Accuracies that a search would see"""
    true: Array
    """Accuracies for the evaluation"""


@dataclass(frozen=True, eq=False)
class Split:
    """Training networks and networks to evaluate on."""

    graphs: Graphs
    targets: Array
    judged: Graphs
    accuracies: Array
    held_out: HeldOut | None = None


def split(
    benchmark: AccuracyBenchmark, size: int, draw: int, judged: int | None, validate: bool, test_labels: bool = False
) -> Split:
    """Return the training and evaluation networks of a draw.

    Args:
        judged: number of evaluation networks; None for all.
        validate: evaluate on observed accuracies outside the training set.
        test_labels: train on true accuracies, as an upper bound.

    Raises:
        ValueError: ``size`` is out of range.
    """
    table, protocol = benchmark.load(), benchmark.holdout
    order = np.random.default_rng([draw, 101]).permutation(len(table.rows))
    limit = len(order) - 2 if protocol is None else protocol.half
    if not 2 <= size <= limit:
        raise ValueError(f"number of training networks is {size}; expected 2 to {limit}")
    unseen = order[size:] if protocol is None else order[protocol.half + protocol.unused : protocol.cells]
    held_out = _held_out(table, unseen[-LOOKED_AT:] if benchmark.all_judge or validate else unseen)
    learned = table.rows[order[:size]]
    graphs, targets = table.graphs.take(learned), table.true[learned] if test_labels else table.observed[order[:size]]
    if validate:
        return Split(graphs, targets, held_out.graphs, held_out.observed, held_out)
    if not benchmark.all_judge:
        return Split(graphs, targets, held_out.graphs, held_out.true, held_out)
    if judged is None:
        return Split(graphs, targets, table.graphs, table.true, held_out)
    judged_rows = np.random.default_rng(103).permutation(len(table.graphs))[:judged]
    return Split(graphs, targets, table.graphs.take(judged_rows), table.true[judged_rows], held_out)


def _held_out(table: Table, chosen: NDArray[np.int64]) -> HeldOut:
    rows = table.rows[chosen]
    return HeldOut(table.graphs.take(rows), table.observed[chosen], table.true[rows])
