"""NAS-Bench-101: single cells, the padded table, pruning, and the whole published table where it is at hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.published import DATA, absent
from nas_core.errors import UnknownChoiceError
from nas_core.graph import AbsentCellError, Graph, GraphError, nasbench101_graph, nasbench101_graphs
from nas_core.graph.nasbench101 import OPERATIONS
from nas_core.graph.pruning import on_ways
from tests.contracts.graph_reader import GraphReaderContract

CONV1, CONV3, POOL = OPERATIONS[1:4]
TABLE = DATA / "nasbench101.npz"
Cell = tuple[np.ndarray, list[str]]


def cell(size: int, edges: list[tuple[int, int]], inner: list[str]) -> Cell:
    matrix = np.zeros((size, size), np.int8)
    matrix[tuple(np.array(edges).T)] = 1
    return matrix, ["input", *inner, "output"]


RESNET = cell(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [CONV3, CONV1])
DEAD = cell(7, [(0, 1), (1, 6), (0, 2), (3, 6), (4, 5)], [CONV3, POOL, CONV1, POOL, POOL])
"""Nodes 2 (leads nowhere), 3 (comes from nowhere), 4 and 5 (neither) are no part of the network."""


class TestReader(GraphReaderContract):
    name = "nasbench101"

    def inputs(self) -> list[tuple[Any, ...]]:
        backwards = cell(4, [(0, 2), (2, 1), (1, 3)], [CONV1, POOL])
        return [RESNET, (*DEAD, True), DEAD, backwards, cell(2, [(0, 1)], [])]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        matrix, ops = RESNET
        loop = matrix.copy()
        loop[2, 1] = 1
        apart = cell(4, [(0, 1), (2, 3)], [CONV1, POOL])
        chain = cell(9, [(node, node + 1) for node in range(8)], [POOL] * 7)
        dense = cell(5, list(itertools.combinations(range(5), 2)), [POOL] * 3)
        return {
            "cycle through": (loop, ops),
            "unknown operation of NAS-Bench-101 'conv3x3'": (matrix, ["input", "conv3x3", CONV1, "output"]),
            "Did you mean 'conv3x3-bn-relu'?": (matrix, ["input", "conv3x3", CONV1, "output"]),
            "adjacency has shape (4, 4) for operations (3,)": (matrix, ops[1:]),
            "adjacency has shape (3, 4)": (matrix[1:], ops),
            "'input' first": (matrix, [*ops[1:], "input"]),
            f"cell 0 has operations ['input', 'input', '{CONV1}', 'output']; expected": (
                matrix,
                ["input", "input", CONV1, "output"],
            ),
            "one of each": (matrix, ["input", "output", CONV1, "output"]),
            "1 -> 0": cell(3, [(1, 0), (1, 2)], [POOL]),
            "2 -> 1": cell(3, [(0, 1), (2, 1)], [POOL]),
            "a list of names": (matrix, [0, 2, 1, 4]),
            "operations are None": (matrix, None),
            "is not in NAS-Bench-101": (*apart, True),
            "of 9 nodes and 8 edges is not in": chain,
            "of 5 nodes and 10 edges is not in": (*dense, True),
            "adjacency has shape (0,)": ([], []),
        }


def test_indices_are_those_of_nn_former() -> None:
    graph = nasbench101_graph(*cell(5, [(0, 1), (1, 2), (2, 3), (3, 4)], [CONV1, CONV3, POOL]))
    assert graph.ops.tolist() == [0, 1, 2, 3, 4]


def test_a_cell_is_measured_after_pruning() -> None:
    matrix, ops = cell(7, [*itertools.combinations(range(1, 6), 2), (0, 6)], [CONV1] * 5)
    assert len(nasbench101_graph(matrix, ops, prune=True)) == 2
    with pytest.raises(AbsentCellError, match="11 edges"):
        nasbench101_graph(matrix, ops)


def test_pruning_leaves_the_network() -> None:
    assert nasbench101_graph(*DEAD, prune=True) == nasbench101_graph(*cell(3, [(0, 1), (1, 2)], [CONV3]))
    assert nasbench101_graph(*RESNET, prune=True) == nasbench101_graph(*RESNET)
    assert len(nasbench101_graph(*DEAD)) == 7


def on_a_way(matrix: np.ndarray) -> list[int]:
    """Nodes of all paths from first to last, path by path."""
    found: set[int] = set()
    paths = [[0]]
    while paths:
        path = paths.pop()
        if path[-1] == len(matrix) - 1:
            found.update(path)
        paths += [[*path, int(node)] for node in np.flatnonzero(matrix[path[-1]])]
    return sorted(found)


def test_pruning_equals_following_every_path() -> None:
    rng = np.random.default_rng(0)
    pruned = 0
    for _ in range(300):
        size = int(rng.integers(2, 8))
        matrix = np.triu(rng.random((size, size)) < 0.35, 1)
        ops = ["input", *rng.choice([CONV1, CONV3, POOL], size - 2), "output"]
        keep = on_a_way(matrix)
        if not keep:
            with pytest.raises(GraphError, match="no way"):
                nasbench101_graph(matrix, ops, prune=True)
            continue
        expected = Graph.from_adjacency(matrix[np.ix_(keep, keep)], [OPERATIONS.index(ops[node]) for node in keep])
        assert nasbench101_graph(matrix, ops, prune=True) == expected
        pruned += len(keep) < size
    assert pruned > 30


def padded(cells: list[Cell]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrices, ops = np.zeros((len(cells), 7, 7), np.int8), np.full((len(cells), 7), -1)
    for row, (matrix, names) in enumerate(cells):
        matrices[row, : len(names), : len(names)] = matrix
        ops[row, : len(names)] = [OPERATIONS.index(name) for name in names]
    return matrices, ops, np.array([len(names) for _, names in cells])


def test_many_cells_equal_single_cells() -> None:
    cells = [RESNET, DEAD, cell(2, [(0, 1)], [])]
    cells += [cell(3, [(0, 1), (1, 2), *more], [op]) for op, more in itertools.product(OPERATIONS[1:4], ([], [(0, 2)]))]
    assert list(nasbench101_graphs(*padded(cells))) == [nasbench101_graph(*one) for one in cells]


def test_wrong_tables_are_refused() -> None:
    matrices, ops, sizes = padded([RESNET, RESNET])
    for column, value, error, said in (
        (1, 5, UnknownChoiceError, "unknown operation index of NAS-Bench-101 5"),
        (1, 4, GraphError, "cell 1 has operations"),
        (3, 1, GraphError, "cell 1 has operations"),
        (0, 1, GraphError, "cell 1 has operations"),
        (2, -2, GraphError, "expected 0 to 32767"),
    ):
        wrong = ops.copy()
        wrong[1, column] = value
        with pytest.raises(error, match=said):
            nasbench101_graphs(matrices, wrong, sizes)
    for edge in ((1, 0), (3, 1)):
        wrong = matrices.copy()
        wrong[1] = 0
        wrong[1][edge] = 1
        with pytest.raises(GraphError, match=f"cell 1 has an edge {edge[0]} -> {edge[1]}"):
            nasbench101_graphs(wrong, ops, sizes)
    ops[0, 1] = 4  # the names are those of its own nodes
    with pytest.raises(
        GraphError, match=rf"cell 0 has operations \['input', 'output', '{CONV1}', 'output'\]; expected"
    ):
        nasbench101_graphs(matrices, ops, sizes)
    ops[0, 1] = ops[1, 1]
    with pytest.raises(GraphError, match="beyond the size"):
        nasbench101_graphs(matrices, ops, sizes - 1)
    dense = cell(5, list(itertools.combinations(range(5), 2)), [POOL] * 3)
    with pytest.raises(AbsentCellError, match="cell 1 of 5 nodes and 10 edges"):
        nasbench101_graphs(*padded([RESNET, dense]))


@pytest.mark.skipif(bool(absent(TABLE)), reason=absent(TABLE) or "")
def test_the_whole_benchmark() -> None:
    with np.load(TABLE, allow_pickle=False) as table:
        sizes, bits, inner = (table[name].astype(np.int64) for name in ("n_vertices", "edge_bits", "ops"))
    matrices = np.zeros((len(sizes), 7, 7), np.bool_)
    for y in range(1, 7):
        for x in range(y):
            matrices[:, x, y] = bits >> (x + y * (y - 1) // 2) & 1
    ops = np.zeros((len(sizes), 7), np.int64)
    ops[:, 1:6] = np.array([2, 1, 3, -1])[inner]
    ops[np.arange(len(sizes)), sizes - 1] = OPERATIONS.index("output")
    graphs = nasbench101_graphs(matrices, ops, sizes)
    assert np.bincount(graphs.sizes).tolist() == [0, 0, 1, 6, 84, 2441, 62010, 359082]
    assert graphs.edge_counts.max() == 9
    for row in np.random.default_rng(0).integers(0, len(graphs), 100):
        size = sizes[row]
        names = [OPERATIONS[index] for index in ops[row, :size]]
        single = nasbench101_graph(matrices[row, :size, :size], names, prune=True)
        assert single == graphs[int(row)], "the benchmark holds pruned cells"
    whole = matrices[sizes == 7]
    assert on_ways(whole).all()
