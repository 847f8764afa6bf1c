"""Splits of a table into training networks and evaluation networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.accuracy.tables import AccuracyBenchmark, Table
from nas_core.graph import Graphs

Array = NDArray[np.float64]
HELD_OUT_SIZE = 5000
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
    eval_graphs: Graphs
    eval_accuracies: Array
    held_out: HeldOut | None = None


def split(
    benchmark: AccuracyBenchmark,
    size: int,
    draw: int,
    eval_count: int | None,
    validate: bool,
    test_labels: bool = False,
) -> Split:
    """Return the training and evaluation networks of a draw.

    Args:
        eval_count: number of evaluation networks; None for all.
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
    held_out = _held_out(table, unseen[-HELD_OUT_SIZE:] if benchmark.evaluates_all or validate else unseen)
    train_rows = table.rows[order[:size]]
    graphs, targets = (
        table.graphs.take(train_rows),
        table.true[train_rows] if test_labels else table.observed[order[:size]],
    )
    if validate:
        return Split(graphs, targets, held_out.graphs, held_out.observed, held_out)
    if not benchmark.evaluates_all:
        return Split(graphs, targets, held_out.graphs, held_out.true, held_out)
    if eval_count is None:
        return Split(graphs, targets, table.graphs, table.true, held_out)
    eval_rows = np.random.default_rng(103).permutation(len(table.graphs))[:eval_count]
    return Split(graphs, targets, table.graphs.take(eval_rows), table.true[eval_rows], held_out)


def _held_out(table: Table, indices: NDArray[np.int64]) -> HeldOut:
    rows = table.rows[indices]
    return HeldOut(table.graphs.take(rows), table.observed[indices], table.true[rows])
