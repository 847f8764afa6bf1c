"""Published benchmarks of cells as search spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.published import (
    NASBENCH101,
    nasbench101,
    nasbench201,
    nasbench201_ops,
    zero_cost,
)
from nas_core.graph import Graphs
from nas_core.graph.nasbench201 import CHOICES
from nas_core.graph.transnasbench import transnasbench_macro_graph
from nas_core.search import Constraint
from nas_core.space import Choice, SearchSpace
from nas_core.space.slots import Rows

NODES, EDGES = 7, 9
OPERATIONS = ("conv3x3", "conv1x1", "maxpool3x3")
PAIRS = [(x, y) for y in range(NODES) for x in range(y)]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Search space with the accuracy of every cell."""

    space: SearchSpace
    cells: Callable[[Rows], Integers]
    """Function: rows ``(n, slots)`` -> cell indices ``(n,)``, -1 for invalid rows."""
    graphs: Callable[[Rows], Graphs]
    query_split: str
    """Split whose accuracy a query returns."""
    observed_accuracy: NDArray[np.float64]
    """Accuracy that a query returns, by cell."""
    test_accuracy: NDArray[np.float64]
    """Accuracy by which cells are ranked."""
    constrained: bool

    def metrics(self, cell: int) -> dict[str, float]:
        """Return the metrics that a query of a cell returns; all are minimised."""
        return {"loss": -float(self.observed_accuracy[cell])}

    def valid(self, rows: Rows) -> NDArray[np.bool_]:
        """Return a mask ``(n,)`` of rows that are cells."""
        has_cell: NDArray[np.bool_] = self.cells(rows) >= 0
        return has_cell

    @property
    def limits(self) -> list[Constraint]:
        if not self.constrained:
            return []
        return [Constraint("no_cell", 0.5, lambda rows: 1.0 - self.valid(rows))]


def nasbench201_table() -> Table:
    graphs, valid, test = nasbench201()
    cell_of_row = {row.tobytes(): index for index, row in enumerate(nasbench201_ops().astype(np.int16))}

    def cells(rows: Rows) -> Integers:
        return np.array([cell_of_row[row.tobytes()] for row in np.ascontiguousarray(rows, np.int16)], np.int64)

    space = SearchSpace("nasbench201", [Choice.make(f"edge{edge}", CHOICES) for edge in range(6)])
    return Table(space, cells, lambda rows: graphs.take(cells(rows)), "validation", valid, test, False)


def transnas_object_table() -> Table:
    """Return the 662 chains of TransNAS-Bench-101 (macro, object classification) with a published accuracy.

    They have one accuracy, of validation.
    """
    published = zero_cost("transnas_macro/class_object")
    digits = np.array([row["architecture"] for row in published])
    accuracy = np.array([row["val_accuracy"] / 100 for row in published])
    graphs = Graphs.of([transnasbench_macro_graph(row) for row in digits])
    choices = [Choice.make(f"module{index}", range(int(index < 4), 5)) for index in range(6)]
    space = SearchSpace("transnas-object", choices)
    offsets = np.array([choice.options[0][0] for choice in space.choices])
    index_of_digits = {tuple(row): index for index, row in enumerate(digits.tolist())}

    def cells(rows: Rows) -> Integers:
        return np.array([index_of_digits.get(tuple(row), -1) for row in (rows + offsets).tolist()], np.int64)

    return Table(space, cells, lambda rows: graphs.take(cells(rows)), "validation", accuracy, accuracy, True)


def nasbench101_table() -> Table:
    """Return all 423,624 cells with mean test accuracy; most have no published validation accuracy."""
    graphs, accuracy = nasbench101()
    with np.load(NASBENCH101, allow_pickle=False) as table:
        sizes, bits = table["n_vertices"].astype(np.int64), table["edge_bits"]
        operations = table["ops"].astype(np.int64)
    adjacency = np.zeros((len(sizes), NODES, NODES), np.bool_)
    for bit, (x, y) in enumerate(PAIRS):
        adjacency[:, x, y] = (bits >> np.uint32(bit)) & 1
    labels = np.zeros((len(sizes), NODES), np.int64)
    labels[:, 1:6] = np.where(operations >= 0, operations + 2, 0)
    labels[:, 0] = 1
    labels[np.arange(len(sizes)), sizes - 1] = len(OPERATIONS) + 2
    cell_of_fingerprint = {key: index for index, key in enumerate(fingerprints(adjacency, labels).tolist())}
    assert len(cell_of_fingerprint) == len(sizes), "two cells have one fingerprint"

    def cells(rows: Rows) -> Integers:
        pruned = _prune(rows)
        keys = fingerprints(*pruned).tolist()
        within_limit = pruned[0].sum((1, 2)) <= EDGES
        return np.array(
            [
                cell_of_fingerprint.get(key, -1) if within_edges else -1
                for key, within_edges in zip(keys, within_limit, strict=True)
            ],
            np.int64,
        )

    edges = [Choice.make(f"edge{x}{y}", [0, 1]) for x, y in PAIRS]
    nodes = [Choice.make(f"op{node}", OPERATIONS) for node in range(1, 6)]
    space = SearchSpace("nasbench101", [*edges, *nodes])
    return Table(space, cells, lambda rows: graphs.take(cells(rows)), "test", accuracy, accuracy, True)


def _prune(rows: Rows) -> tuple[NDArray[np.bool_], Integers]:
    """Return adjacency ``(n, 7, 7)`` and labels ``(n, 7)``; label 0 for nodes on no path from input to output."""
    adjacency = np.zeros((len(rows), NODES, NODES), np.bool_)
    for bit, (x, y) in enumerate(PAIRS):
        adjacency[:, x, y] = rows[:, bit] == 1
    reached, reaching = np.zeros((2, len(rows), NODES), np.bool_)
    reached[:, 0], reaching[:, -1] = True, True
    for _ in range(NODES):
        reached |= (reached[:, :, None] & adjacency).any(1)
        reaching |= (adjacency & reaching[:, None, :]).any(2)
    used = reached & reaching
    labels = np.full((len(rows), NODES), 1, np.int64)
    labels[:, 1:6] = rows[:, len(PAIRS) :].astype(np.int64) + 2
    labels[:, -1] = len(OPERATIONS) + 2
    return adjacency & used[:, :, None] & used[:, None, :], np.where(used, labels, 0)


def fingerprints(adjacency: NDArray[np.bool_], labels: Integers) -> NDArray[np.uint64]:
    """Return hashes ``(n,)`` that do not depend on the order of nodes; nodes with label 0 are ignored."""
    state = _mix(labels.astype(np.uint64) + np.uint64(1))
    present = (labels > 0).astype(np.uint64)
    edges = adjacency.astype(np.uint64)
    for _ in range(NODES):
        down = (edges * _mix(state)[:, :, None]).sum(1, dtype=np.uint64)
        up = (edges * _mix(state ^ np.uint64(0x9E37))[:, None, :]).sum(2, dtype=np.uint64)
        state = _mix(state + _mix(down) * np.uint64(3) + _mix(up) * np.uint64(5))
    total: NDArray[np.uint64] = (_mix(state) * present).sum(1, dtype=np.uint64)
    return total


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        return x ^ (x >> np.uint64(31))
