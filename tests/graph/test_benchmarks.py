"""Readers of benchmarks: the contract, plain conversions, and the whole published tables where they are present."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs, nasbench201_string
from nas_core.graph.nasbench101 import OPERATIONS as NB101
from nas_core.graph.nasbench101 import AbsentCellError, nasbench101_graph, nasbench101_graphs
from nas_core.graph.nasbench201 import (
    CHOICES,
    STATES,
    nasbench201_graph,
    nasbench201_graphs,
    nasbench201_ops,
    nasbench201_unpruned,
)
from nas_core.graph.nasbench201 import OPERATIONS as NB201
from nas_core.graph.nasbench301 import CHOICES as NB301_CHOICES
from nas_core.graph.nasbench301 import OPERATIONS as NB301
from nas_core.graph.nasbench301 import nasbench301_graph
from nas_core.graph.transnasbench import transnasbench_macro_graph, transnasbench_micro_graph
from tests.contracts.graph_reader import GraphReaderContract

CONV1, CONV3, POOL = NB101[1:4]
Cell = tuple[np.ndarray, list[str]]


def cell(size: int, edges: list[tuple[int, int]], inner: list[str]) -> Cell:
    matrix = np.zeros((size, size), np.int8)
    matrix[tuple(np.array(edges).T)] = 1
    return matrix, ["input", *inner, "output"]


RESNET = cell(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [CONV3, CONV1])


DEAD = cell(7, [(0, 1), (1, 6), (0, 2), (3, 6), (4, 5)], [CONV3, POOL, CONV1, POOL, POOL])


def test_a_cell_is_measured_after_pruning() -> None:
    matrix, ops = cell(7, [*itertools.combinations(range(1, 6), 2), (0, 6)], [CONV1] * 5)
    assert len(nasbench101_graph(matrix, ops, prune=True)) == 2
    with pytest.raises(AbsentCellError):
        nasbench101_graph(matrix, ops)


def on_a_way(matrix: np.ndarray) -> list[int]:
    """Nodes of all paths from first to last, path by path."""
    results: set[int] = set()
    paths = [[0]]
    while paths:
        path = paths.pop()
        if path[-1] == len(matrix) - 1:
            results.update(path)
        paths += [[*path, int(node)] for node in np.flatnonzero(matrix[path[-1]])]
    return sorted(results)


def test_pruning_equals_following_every_path() -> None:
    rng = np.random.default_rng(0)
    pruned = 0
    for _ in range(300):
        size = int(rng.integers(2, 8))
        matrix = np.triu(rng.random((size, size)) < 0.35, 1)
        ops = ["input", *rng.choice([CONV1, CONV3, POOL], size - 2), "output"]
        keep = on_a_way(matrix)
        if not keep:
            with pytest.raises(AbsentCellError):
                nasbench101_graph(matrix, ops, prune=True)
            continue
        expected = Graph.from_adjacency(matrix[np.ix_(keep, keep)], [NB101.index(ops[node]) for node in keep])
        assert nasbench101_graph(matrix, ops, prune=True) == expected
        pruned += len(keep) < size
    assert pruned > 30


def padded(cells: list[Cell]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrices, ops = np.zeros((len(cells), 7, 7), np.int8), np.full((len(cells), 7), -1)
    for row, (matrix, names) in enumerate(cells):
        matrices[row, : len(names), : len(names)] = matrix
        ops[row, : len(names)] = [NB101.index(name) for name in names]
    return matrices, ops, np.array([len(names) for _, names in cells])


def test_many_cells_equal_single_cells() -> None:
    cells = [RESNET, DEAD, cell(2, [(0, 1)], [])]
    cells += [cell(3, [(0, 1), (1, 2), *more], [op]) for op, more in itertools.product(NB101[1:4], ([], [(0, 2)]))]
    assert list(nasbench101_graphs(*padded(cells))) == [nasbench101_graph(*one) for one in cells]


ALL = np.array(list(itertools.product(range(5), repeat=6)))


BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return nasbench201_graphs(ALL)


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
    kinds = [NB201.index(names[edge]) for edge in kept]
    by_place = tuple(ops[edge] if edge in node else -1 for edge in range(6))
    return Graph([0, *kinds, NB201.index("output")], edges), by_place


def test_all_cells_equal_the_plain_conversion(graphs: Graphs) -> None:
    expected = [plain(tuple(row)) for row in ALL.tolist()]
    assert list(graphs) == [graph for graph, _ in expected]
    assert len({by_place for _, by_place in expected}) == 9445


def test_sizes_and_distinct_graphs_of_the_whole_benchmark(graphs: Graphs) -> None:
    assert np.bincount(graphs.sizes).tolist() == [0, 0, 341, 1364, 928, 3776, 1024, 4096, 4096]
    assert NB201.index("none") not in graphs.ops
    kept, inverse = graphs.distinct()
    assert len(kept) == len(set(graphs)) == 9365
    assert np.array_equal(kept.take(inverse).ops, graphs.ops)


def test_without_pruning_only_none_is_left_out() -> None:
    dead = "|none~0|+|nor_conv_3x3~0|avg_pool_3x3~1|+|none~0|none~1|none~2|"
    full = nasbench201_graph(dead, prune=False)
    assert [NB201[k] for k in full.ops] == ["input", "nor_conv_3x3", "avg_pool_3x3", "output"]
    assert full.edges.tolist() == [[0, 1]]  # what enters state 1 is none
    assert len(nasbench201_graph(dead).ops) == 2
    assert nasbench201_unpruned(dead) == full
    sizes = nasbench201_graphs(ALL, prune=False).sizes
    assert np.bincount(sizes).tolist() == [0, 0, *(math.comb(6, k) * 4**k for k in range(7))]


def test_strings_round_trip(graphs: Graphs) -> None:
    for row in range(0, len(ALL), 97):
        text = nasbench201_string(ALL[row])
        assert nasbench201_ops(text) == tuple(ALL[row])
        assert nasbench201_graph(text) == graphs[row] == nasbench201_graph(ALL[row])
    assert nasbench201_string([3, 3, 3, 1, 3, 2]) == BEST


NORMAL = [(0, 3), (1, 3), (0, 2), (1, 3), (2, 5), (0, 2), (3, 6), (4, 0)]


REDUCTION = [(0, 0), (1, 0), (2, 2), (1, 0), (0, 1), (2, 2), (2, 2), (1, 0)]


def test_nodes_and_edges_by_hand() -> None:
    graph = nasbench301_graph((NORMAL, REDUCTION), connect=False)
    names = [NB301[index] for index in graph.ops]
    assert names[:2] == ["normal_input_0", "normal_input_1"] and names[10] == "normal_output"
    assert names[11:13] == ["reduction_input_0", "reduction_input_1"] and names[21] == "reduction_output"
    sorted_pairs = [(0, 3), (1, 3), (0, 2), (1, 3), (0, 2), (2, 5), (3, 6), (4, 0)]
    assert names[2:10] == [NB301_CHOICES[op] for _, op in sorted_pairs]
    normal = {(0, 2), (1, 3), (0, 4), (1, 5), (0, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 9), (7, 9)}
    normal |= {(node, 10) for node in range(2, 10)}
    assert {tuple(edge) for edge in graph.edges.tolist() if max(edge) < 11} == normal
    assert not graph.adjacency[:11, 11:].any() and not graph.adjacency[11:, :11].any()


def test_connected_cells_differ_by_two_edges() -> None:
    apart, joined = (nasbench301_graph((NORMAL, REDUCTION), connect) for connect in (False, True))
    assert joined == Graph(apart.ops, [*apart.edges.tolist(), (10, 11), (10, 12)])


OFFICIAL = "64-41414-1_02_333"


def test_the_example_of_the_readme() -> None:
    """node 1 = skip(0); node 2 = none(0) + conv1x1(1); node 3 = conv3x3(0) + conv3x3(1) + conv3x3(2)."""
    same = nasbench201_graph("|skip_connect~0|+|none~0|nor_conv_1x1~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|")
    assert transnasbench_micro_graph(OFFICIAL) == same
    assert transnasbench_micro_graph([1, 0, 2, 3, 3, 3]) == same


def test_cells_are_those_of_nasbench201() -> None:
    names = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3")
    for ops in list(itertools.product(range(4), repeat=6))[::41]:
        text = "64-41414-{}_{}{}_{}{}{}".format(*ops)
        same = nasbench201_graph("|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*(names[op] for op in ops)))
        assert same == transnasbench_micro_graph(text) == transnasbench_micro_graph(ops)


def test_chains() -> None:
    chain = Graph([0, 1, 2, 3, 4, 5], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    for same in ("64-1234-basic", "1234", [1, 2, 3, 4], np.array([1, 2, 3, 4, 0, 0])):
        assert transnasbench_macro_graph(same) == chain


def test_every_macro_architecture_of_the_benchmark_is_read() -> None:
    """Channels double once to three times, the resolution halves once to four times: 3,256 chains."""
    chains = set()
    for modules in itertools.chain.from_iterable(itertools.product((1, 2, 3, 4), repeat=depth) for depth in (4, 5, 6)):
        doubled, halved = (sum(m in kinds for m in modules) for kinds in ((2, 4), (3, 4)))
        if 1 <= doubled <= 3 and 1 <= halved <= 4:
            chains.add(transnasbench_macro_graph(modules))
    assert len(chains) == 3256


class TestNasBench101(GraphReaderContract):
    name = "nasbench101"

    def inputs(self) -> list[tuple[Any, ...]]:
        backwards = cell(4, [(0, 2), (2, 1), (1, 3)], [CONV1, POOL])
        return [RESNET, (*DEAD, True), DEAD, backwards, cell(2, [(0, 1)], [])]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        matrix, ops = RESNET
        loop = matrix.copy()
        loop[2, 1] = 1
        return {
            "cycle through": (loop, ops),
            "Did you mean 'conv3x3-bn-relu'?": (matrix, ["input", "conv3x3", CONV1, "output"]),
            "(4, 4) for operations (3,)": (matrix, ops[1:]),
            "'input' first": (matrix, [*ops[1:], "input"]),
            "2 -> 1": cell(3, [(0, 1), (2, 1)], [POOL]),
            "is not in NAS-Bench-101": (*cell(4, [(0, 1), (2, 3)], [CONV1, POOL]), True),
            "has 9 nodes and 8 edges; expected at most 7": cell(9, [(node, node + 1) for node in range(8)], [POOL] * 7),
        }


class TestNasBench201(GraphReaderContract):
    name = "nasbench201"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [(BEST,), ([0, 0, 0, 0, 0, 0],), (np.array([1, 2, 3, 4, 0, 1]),), ((4, 4, 4, 4, 4, 4),)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "Did you mean 'nor_conv_3x3'?": (BEST.replace("nor_conv_3x3~0|+", "conv_3x3~0|+"),),
            "expected |operation~0|+|": (BEST[:-1],),
            "shape (1, 3)": ([1, 2, 3],),
            "operation index of NAS-Bench-201 5": ([0, 1, 2, 3, 4, 5],),
            "type float64": ([0.5] * 6,),
        }


class TestNasBench301(GraphReaderContract):
    name = "nasbench301"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [((tuple(NORMAL), tuple(REDUCTION)),), (np.array([REDUCTION, NORMAL]),), ((NORMAL, REDUCTION), False)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "(1, 8, 2)": ([NORMAL],),
            "unequal length": ([NORMAL, REDUCTION[:7]],),
            "operation index of NAS-Bench-301 7": ([NORMAL, [(0, 7), *REDUCTION[1:]]],),
            "state 2 has sources [[0, 1], [2, 1]]": ([NORMAL, [(2, 0), *REDUCTION[1:]]],),
        }


class TestTransNasBenchMicro(GraphReaderContract):
    name = "transnasbench_micro"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [(OFFICIAL,), ("3_33_333",), ([0, 0, 0, 0, 0, 0],), (np.array([1, 2, 3, 1, 2, 3]),)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "'64-1234-basic'": ("64-1234-basic",),
            "index of TransNAS-Bench-101 4": ("64-41414-1_02_334",),
            "shape (1, 5)": ([0] * 5,),
        }


class TestTransNasBenchMacro(GraphReaderContract):
    name = "transnasbench_macro"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [("64-1234-basic",), ([2, 3, 1, 1, 0, 0],), (np.array([4, 1, 4, 1, 4]),), ("111143",)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            f"'{OFFICIAL}'": (OFFICIAL,),
            "got modules [1, 2, 3]": ("64-123-basic",),
            "unknown operation index of TransNAS-Bench-101 5": ("64-12345-basic",),
            "got modules [[1, 2, 3, 4]]": ([[1, 2, 3, 4]],),
        }
