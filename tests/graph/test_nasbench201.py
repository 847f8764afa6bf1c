"""NAS-Bench-201: all 15,625 cells against a plain conversion, edge by edge."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.published import DATA, absent
from nas_core.errors import UnknownChoiceError
from nas_core.graph import (
    Graph,
    GraphError,
    Graphs,
    nasbench201_graph,
    nasbench201_graphs,
    nasbench201_ops,
    nasbench201_string,
)
from nas_core.graph.nasbench201 import CHOICES, OPERATIONS, STATES, nasbench201_unpruned
from tests.contracts.graph_reader import GraphReaderContract

ALL = np.array(list(itertools.product(range(5), repeat=6)))
BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
TABLE = DATA / "nasbench201.npz"


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return nasbench201_graphs(ALL)


class TestReader(GraphReaderContract):
    name = "nasbench201"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [(BEST,), ([0, 0, 0, 0, 0, 0],), (np.array([1, 2, 3, 4, 0, 1]),), ((4, 4, 4, 4, 4, 4),)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "unknown operation of NAS-Bench-201 'conv_3x3'": (BEST.replace("nor_conv_3x3~0|+", "conv_3x3~0|+"),),
            "Did you mean 'nor_conv_3x3'?": (BEST.replace("nor_conv_3x3~0|+", "conv_3x3~0|+"),),
            "expected |operation~0|+|": (BEST[:-1],),
            "got architecture ''": ("",),
            "expected six indices": ([1, 2, 3],),
            "shape (1, 6)": ([[1, 2, 3, 4, 0, 1]],),
            "operation index of NAS-Bench-201 5": ([0, 1, 2, 3, 4, 5],),
            "operation index of NAS-Bench-201 -1": ([0, 1, 2, 3, 4, -1],),
            "whole numbers": ([0.5] * 6,),
            "type object": (None,),
        }


def plain(ops: tuple[int, ...]) -> tuple[Graph, tuple[int, ...]]:
    """The cell's graph, and its operations by place with -1 where one is pruned; ways are followed one by one."""
    names = [CHOICES[index] for index in ops]
    ways: list[list[int]] = []

    def follow(state: int, way: list[int]) -> None:
        if state == 3:
            ways.append(way)
        for edge, (begin, end) in enumerate(STATES):
            if begin == state and names[edge] != "none":
                follow(end, [*way, edge])

    follow(0, [])
    kept = sorted({edge for way in ways for edge in way})
    node = {edge: place for place, edge in enumerate(kept, 1)}
    output = len(kept) + 1
    edges = set()
    for way in ways:
        places = [0, *(node[edge] for edge in way), output]
        edges.update(itertools.pairwise(places))
    kinds = [OPERATIONS.index(names[edge]) for edge in kept]
    by_place = tuple(ops[edge] if edge in node else -1 for edge in range(6))
    return Graph([0, *kinds, OPERATIONS.index("output")], edges), by_place


def test_all_cells_equal_the_plain_conversion(graphs: Graphs) -> None:
    expected = [plain(tuple(row)) for row in ALL.tolist()]
    assert list(graphs) == [graph for graph, _ in expected]
    assert len({by_place for _, by_place in expected}) == 9445


def test_sizes_and_distinct_graphs_of_the_whole_benchmark(graphs: Graphs) -> None:
    assert np.bincount(graphs.sizes).tolist() == [0, 0, 341, 1364, 928, 3776, 1024, 4096, 4096]
    assert OPERATIONS.index("none") not in graphs.ops
    kept, inverse = graphs.distinct()
    assert len(kept) == len(set(graphs)) == 9365
    assert np.array_equal(kept.take(inverse).ops, graphs.ops)


def test_chains_of_two_operations_are_one_graph() -> None:
    """Why there are 80 graphs fewer than operations by place: through state 1 or through state 2."""
    conv, pool = CHOICES.index("nor_conv_1x1"), CHOICES.index("avg_pool_3x3")
    assert nasbench201_graph([conv, 0, 0, 0, pool, 0]) == nasbench201_graph([0, conv, 0, 0, 0, pool])


def test_a_full_cell_has_the_edges_of_nn_former() -> None:
    expected = [(0, 1), (0, 2), (0, 4), (1, 3), (1, 5), (2, 6), (3, 6), (4, 7), (5, 7), (6, 7)]
    graph = nasbench201_graph([1, 2, 3, 4, 1, 2])
    assert graph == Graph([0, 4, 1, 2, 3, 4, 1, 6], expected)


def test_nothing_left_is_input_and_output_without_an_edge() -> None:
    assert nasbench201_graph([4, 4, 4, 0, 0, 0]) == Graph([0, 6], [])


def test_without_pruning_only_none_is_left_out() -> None:
    dead = "|none~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|none~0|none~1|none~2|"
    whole = nasbench201_graph(dead, prune=False)
    assert [OPERATIONS[k] for k in whole.ops] == ["input", "nor_conv_3x3", "avg_pool_3x3", "output"]
    assert whole.edges.tolist() == [[0, 1]]  # what enters state 1 is none
    assert len(nasbench201_graph(dead).ops) == 2
    assert nasbench201_unpruned(dead) == whole
    sizes = nasbench201_graphs(ALL, prune=False).sizes
    assert np.bincount(sizes).tolist() == [0, 0, *(math.comb(6, k) * 4**k for k in range(7))]


def test_strings_round_trip(graphs: Graphs) -> None:
    for row in range(0, len(ALL), 97):
        text = nasbench201_string(ALL[row])
        assert nasbench201_ops(text) == tuple(ALL[row])
        assert nasbench201_graph(text) == graphs[row] == nasbench201_graph(ALL[row])
    assert nasbench201_string([3, 3, 3, 1, 3, 2]) == BEST


def test_wrong_strings_and_tables_are_refused() -> None:
    with pytest.raises(GraphError, match="expected six"):
        nasbench201_string([0])
    with pytest.raises(UnknownChoiceError, match="index of NAS-Bench-201 9"):
        nasbench201_string([0, 0, 0, 0, 0, 9])
    with pytest.raises(UnknownChoiceError, match="index of NAS-Bench-201 7"):
        nasbench201_graphs([[0, 0, 0, 0, 0, 7]])
    for table in ([0] * 6, [[0] * 5], [[[0] * 6]]):
        with pytest.raises(GraphError, match=r"expected \(G, 6\)"):
            nasbench201_graphs(table)
    assert len(nasbench201_graphs(np.zeros((0, 6), int))) == 0
    with pytest.raises(GraphError, match=r"^operations are of type float64; expected whole numbers"):
        nasbench201_graphs([[0.5] * 6])


def test_the_whole_benchmark_is_read_in_a_second() -> None:
    start = time.process_time()
    nasbench201_graphs(ALL)
    assert time.process_time() - start < 2  # takes 0.06 s


@pytest.mark.skipif(bool(absent(TABLE)), reason=absent(TABLE) or "")
def test_the_published_table(graphs: Graphs) -> None:
    with np.load(TABLE, allow_pickle=False) as table:
        ops, accuracy = table["ops"], table["cifar10_test_acc_200"]
    assert len(np.unique(ops, axis=0)) == 15625
    assert nasbench201_string(ops[accuracy.argmax()]) == BEST
    read = nasbench201_graphs(ops)
    assert np.array_equal(np.bincount(read.sizes), np.bincount(graphs.sizes))
