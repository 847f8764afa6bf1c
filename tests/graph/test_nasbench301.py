"""NAS-Bench-301: both DARTS cells in one graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from nas_core.graph import Graph, nasbench301_graph
from nas_core.graph.nasbench301 import CHOICES, OPERATIONS
from tests.contracts.graph_reader import GraphReaderContract

NORMAL = [(0, 3), (1, 3), (0, 2), (1, 3), (2, 5), (0, 2), (3, 6), (4, 0)]
REDUCTION = [(0, 0), (1, 0), (2, 2), (1, 0), (0, 1), (2, 2), (2, 2), (1, 0)]


def changed(cell: int, pair: int, part: int, value: float) -> tuple[Any]:
    cells = [[list(p) for p in NORMAL], [list(p) for p in REDUCTION]]
    cells[cell][pair][part] = value  # type: ignore[assignment]
    return (cells,)


class TestReader(GraphReaderContract):
    name = "nasbench301"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [
            ((tuple(NORMAL), tuple(REDUCTION)),),
            (np.array([REDUCTION, NORMAL]),),
            ((NORMAL, REDUCTION), False),
            ((REDUCTION, NORMAL), False),
            changed(1, 0, 0, 1),
        ]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "expected (2, 8, 2)": ([NORMAL],),
            "shape (2, 7, 2)": ([NORMAL[:7], REDUCTION[:7]],),
            "cells are of unequal length": ([NORMAL, REDUCTION[:7]],),
            "operation index of NAS-Bench-301 7": changed(0, 3, 1, 7),
            "state 2 reads states [[0, 2], [0, 1]]; expected 0 to 1": changed(0, 1, 0, 2),
            "state 5 reads": changed(1, 7, 0, 5),
            "[[0, -1]": changed(0, 1, 0, -1),
            "cells are of type float64; expected whole numbers": changed(0, 0, 1, 1.5),
            "type object": (None,),
        }


def test_nodes_and_edges_by_hand() -> None:
    graph = nasbench301_graph((NORMAL, REDUCTION), connect=False)
    names = [OPERATIONS[index] for index in graph.ops]
    assert names[:2] == ["normal_input_0", "normal_input_1"] and names[10] == "normal_output"
    assert names[11:13] == ["reduction_input_0", "reduction_input_1"] and names[21] == "reduction_output"
    sorted_pairs = [(0, 3), (1, 3), (0, 2), (1, 3), (0, 2), (2, 5), (3, 6), (4, 0)]
    assert names[2:10] == [CHOICES[op] for _, op in sorted_pairs]
    normal = {(0, 2), (1, 3), (0, 4), (1, 5), (0, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 9), (7, 9)}
    normal |= {(node, 10) for node in range(2, 10)}
    assert {tuple(edge) for edge in graph.edges.tolist() if max(edge) < 11} == normal
    assert not graph.adjacency[:11, 11:].any() and not graph.adjacency[11:, :11].any()


def test_connected_cells_differ_by_two_edges() -> None:
    apart, joined = (nasbench301_graph((NORMAL, REDUCTION), connect) for connect in (False, True))
    assert joined == Graph(apart.ops, [*apart.edges.tolist(), (10, 11), (10, 12)])


def test_the_order_of_a_states_operations_changes_nothing() -> None:
    swapped = [pair for k in range(0, 8, 2) for pair in (NORMAL[k + 1], NORMAL[k])]
    assert nasbench301_graph((swapped, REDUCTION)) == nasbench301_graph((NORMAL, REDUCTION))


def test_inputs_and_cells_are_told_apart_in_any_order_of_nodes() -> None:
    """Swapping the inputs of a cell, or the cells, is another network: counts of (kind, kinds of successors) differ."""

    def local_view(graph: Graph) -> list[tuple[int, tuple[int, ...]]]:
        return sorted((int(graph.ops[i]), tuple(sorted(graph.ops[graph.adjacency[i]]))) for i in range(len(graph)))

    inputs = [(1 - source if source < 2 else source, op) for source, op in NORMAL]
    graphs = [((NORMAL, REDUCTION)), ((inputs, REDUCTION)), ((REDUCTION, NORMAL))]
    views = [local_view(nasbench301_graph(cells, connect=False)) for cells in graphs]
    assert views[0] != views[1] and views[0] != views[2]
