"""Sets of graphs: every way in and out against single graphs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from nas_core.graph import FEATURES, Graph, GraphError, Graphs


def some(count: int = 30, seed: int = 0, parts: bool = False) -> list[Graph]:
    """Graphs of 1 to 6 nodes, not in topological order, some of them equal."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        size = int(rng.integers(1, 7))
        matrix = np.triu(rng.random((size, size)) < 0.5, 1)
        more: dict[str, Any] = {}
        if parts:
            more = {"attributes": rng.random((size, 3)), "shapes": rng.random((size, 4)), "static": rng.random(2)}
            more["costs"] = rng.random((size, 3))
        made.append(Graph.from_adjacency(matrix, rng.integers(0, 3, size), **more).permuted(rng.permutation(size)))
    return made


@pytest.mark.parametrize("parts", [False, True])
def test_a_sequence_of_equal_values(parts: bool) -> None:
    single = some(parts=parts)
    graphs = Graphs.of(single)
    assert list(graphs) == single and len(graphs) == 30
    assert graphs[-1] == single[-1] and graphs[np.int64(3)] == single[3]
    assert list(graphs[2:20:3]) == single[2:20:3] and list(graphs[::-1]) == single[::-1]
    assert Graphs.of(graphs) is graphs
    assert list(pickle.loads(pickle.dumps(graphs))) == single
    with pytest.raises(IndexError):
        graphs[30]


def test_no_graphs() -> None:
    empty = Graphs.of([])
    assert len(empty) == 0 and list(empty.take([])) == [] and list(empty[:]) == []
    assert empty.dense().ops.shape == (0, 1)
    assert [len(x) for x in empty.distinct()] == [0, 0]


def test_arrays_are_read_only() -> None:
    graphs = Graphs.of(some(parts=True))
    for name in ("ops", "edges", "sizes", "edge_counts", *FEATURES):
        with pytest.raises(ValueError, match="read-only"):
            getattr(graphs, name)[0] = 0
        with pytest.raises(AttributeError):
            setattr(graphs, name, None)


def test_dense_and_back() -> None:
    single = some()
    graphs = Graphs.of(single)
    dense = graphs.dense()
    assert dense.ops.shape == (30, 6) and dense.adjacency.shape == (30, 6, 6)
    for index, graph in enumerate(single):
        size = len(graph)
        assert np.array_equal(dense.ops[index, :size], graph.ops) and not dense.ops[index, size:].any()
        assert np.array_equal(dense.adjacency[index, :size, :size], graph.adjacency)
        assert dense.adjacency[index].sum() == len(graph.edges)
    assert list(Graphs.from_dense(dense.ops, dense.adjacency, dense.sizes)) == single
    wide = graphs.dense([4, 2], width=9)
    assert wide.ops.shape == (2, 9) and wide.sizes.tolist() == [len(single[4]), len(single[2])]
    assert list(Graphs.from_dense(wide.ops, wide.adjacency.astype(float), wide.sizes)) == [single[4], single[2]]
    square = Graphs.from_dense(np.zeros((2, 3), int), np.triu(np.ones((2, 3, 3)), 1))
    assert square.sizes.tolist() == [3, 3] and square.edge_counts.tolist() == [3, 3]


@pytest.mark.parametrize("parts", [False, True])
def test_take(parts: bool) -> None:
    single = some(parts=parts)
    graphs = Graphs.of(single)
    for chosen in ([3, 3, 0, 29], [], [-1, -30], np.array([5])):
        assert list(graphs.take(chosen)) == [single[i] for i in chosen]
    large = graphs.sizes > 3
    assert list(graphs.take(large)) == [g for g in single if len(g) > 3]


def test_distinct() -> None:
    single = some(200) + some(200)
    kept, inverse = Graphs.of(single).distinct()
    assert list(kept) == list(dict.fromkeys(single))
    assert [kept[i] for i in inverse] == single
    with_parts = some(20, parts=True)
    twice = [
        *with_parts,
        *(Graph.from_dict({**g.to_dict(), "static": [0, 1]}) for g in with_parts),
    ]
    assert len(Graphs.of(twice).distinct()[0]) == 40
    assert len(Graphs.of(with_parts + with_parts).distinct()[0]) == 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([0, 1], [[0, 1], [0, 0]]), "expected (G, N)"),
        (([[0, 1]], [[0, 1], [0, 0]]), "expected (G, N)"),
        (([[0, 1]], [[[0, 1, 0], [0, 0, 0]]]), "expected (G, N)"),
        (([[0, 1], [0]], [[[0, 1], [0, 0]]]), "unequal length"),
        (([[0, 1]], [[[0, 1], [0]]]), "unequal length"),
        (([[0, 1]], [[[0, 1], [1, 0]]]), "cycle"),
        (([[0, 1]], [[[0, 0], [0, 1]]]), "cycle"),
        (([[0, -1]], [[[0, 1], [0, 0]]]), "expected 0 to 32767"),
        (([[0, 70000]], [[[0, 1], [0, 0]]]), "expected 0 to 32767"),
        (([[0.5, 1]], [[[0, 1], [0, 0]]]), "whole numbers"),
        (([[0, 1]], [[[0, 1], [0, 0]]], [1]), "beyond the size"),
        (([[0, 1]], [[[0, 1], [0, 0]]], [3]), "from 1 to 2"),
        (([[0, 1]], [[[0, 1], [0, 0]]], [0]), "from 1 to 2"),
        (([[0, 1]], [[[0, 1], [0, 0]]], [2, 2]), "from 1 to 2"),
        (([[0, 1]], [[[0, 1], [0, 0]]], [1.5]), "whole numbers"),
    ],
)
def test_wrong_arrays_are_refused_in_one_line(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graphs.from_dense(*arguments)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_indices_beyond_a_size_may_be_anything() -> None:
    assert Graphs.from_dense([[2, -1]], np.zeros((1, 2, 2)), [1])[0] == Graph([2], [])


def test_wrong_members_and_indices() -> None:
    graph = Graph([0, 1], [(0, 1)])
    for wrong in (None, "graph", [], 0):
        with pytest.raises(GraphError, match="where a Graph was expected"):
            Graphs.of([graph, wrong])  # type: ignore[list-item]
    for more in ({"static": [1]}, {"attributes": [[1], [2]]}):
        with pytest.raises(GraphError, match="expected equal"):
            Graphs.of([graph, Graph(graph.ops, graph.edges, **more)])
    for indices in ([2], [-3], [True], [True, False, True], [[0]], [0.5], 0):
        with pytest.raises(GraphError):
            Graphs.of([graph, graph]).take(indices)
