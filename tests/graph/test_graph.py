"""The graph as a value."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from nas_core.graph import FEATURES, Graph, GraphError

EDGES = [(0, 1), (0, 2), (1, 3), (2, 3)]


def full(**changes: Any) -> Graph:
    parts: dict[str, Any] = {
        "ops": [0, 2, 1, 4],
        "edges": EDGES,
        "attributes": [[0, 1.5], [3, 4], [5, 6], [7, 8]],
        "shapes": np.arange(16).reshape(4, 4),
        "costs": np.arange(12).reshape(4, 3),
        "static": [1, 2.5, 3],
    }
    return Graph(**{**parts, **changes})


def test_arrays_have_their_types_and_shapes() -> None:
    graph = full()
    assert (graph.ops.dtype, graph.edges.dtype) == (np.int16, np.int32)
    assert len(graph) == 4 and graph.edges.shape == (4, 2)
    for values, shape in (
        (graph.attributes, (4, 2)),
        (graph.shapes, (4, 4)),
        (graph.costs, (4, 3)),
        (graph.static, (3,)),
    ):
        assert values is not None and values.shape == shape and values.dtype == np.float32
    bare = Graph([0], [])
    assert bare.edges.shape == (0, 2) and bare.attributes is bare.shapes is bare.costs is bare.static is None


def test_edges_are_sorted_and_each_once() -> None:
    assert Graph([0, 1, 2], [(1, 2), (0, 1), (1, 2)]).edges.tolist() == [[0, 1], [1, 2]]
    assert Graph([0, 1], iter([(0, 1)])) == Graph([0, 1], np.array([[0, 1]]))


def test_nothing_can_be_changed() -> None:
    ops, graph = np.array([0, 1]), full()
    made = Graph(ops, [(0, 1)])
    ops[:] = 7
    assert made.ops.tolist() == [0, 1]
    for name in ("ops", "edges", *FEATURES):
        with pytest.raises(ValueError, match="read-only"):
            getattr(graph, name)[0] = 1
        with pytest.raises(AttributeError, match="immutable"):
            setattr(graph, name, None)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(graph, name)
    with pytest.raises(AttributeError):
        graph.note = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "changes",
    [
        {"ops": [0, 2, 1, 3]},
        {"edges": EDGES[1:]},
        {"attributes": None},
        {"shapes": None},
        {"costs": None},
        {"costs": np.ones((4, 3))},
        {"static": None},
        {"static": [1, 2.5]},
        {"attributes": np.zeros((4, 2))},
    ],
)
def test_every_part_counts_for_equality(changes: dict[str, Any]) -> None:
    graph, other = full(), full(**changes)
    assert graph == full() and hash(graph) == hash(full())
    assert graph != other and hash(graph) != hash(other)
    assert len({graph, full(), other}) == 2


def test_equality_sees_where_one_part_ends_and_the_next_begins() -> None:
    first = Graph([0, 1], [(0, 1)], attributes=[[1], [2]], static=[3, 4, 5])
    second = Graph([0, 1], [(0, 1)], attributes=[[1, 2], [3, 4]], static=[5])
    assert first != second and first != "a graph"
    negative = Graph([0, 1], [(0, 1)], attributes=[[-0.0], [1]])
    assert negative == Graph([0, 1], [(0, 1)], attributes=[[0.0], [1]])


def test_adjacency_round_trip() -> None:
    graph = full()
    matrix = graph.adjacency
    assert matrix.sum() == 4 and all(matrix[i, j] for i, j in EDGES)
    parts = {name: getattr(graph, name) for name in FEATURES}
    for same in (matrix, matrix.astype(float), (2 * matrix).tolist()):
        assert Graph.from_adjacency(same, graph.ops, **parts) == graph


def test_round_trips() -> None:
    for graph in (full(), Graph([3], []), full(static=None)):
        assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph
        assert pickle.loads(pickle.dumps(graph)) == graph == copy.deepcopy(graph)
    assert set(Graph([3], []).to_dict()) == {"ops", "edges"}


def test_permuted_is_the_same_network() -> None:
    graph, order = full(), [2, 0, 3, 1]
    moved = graph.permuted(order)
    assert np.array_equal(moved.adjacency, graph.adjacency[np.ix_(order, order)])
    for name in ("ops", "attributes", "shapes", "costs"):
        assert np.array_equal(getattr(moved, name), getattr(graph, name)[order])
    assert np.array_equal(moved.static, graph.static)  # type: ignore[arg-type]
    assert moved != graph and moved.permuted(np.argsort(order)) == graph


def test_long_graphs_in_any_order_are_no_cycle() -> None:
    order = np.random.default_rng(0).permutation(500)
    chain = np.stack([order[:-1], order[1:]], axis=1)
    assert len(Graph(np.zeros(500, int), chain)) == 500
    with pytest.raises(GraphError, match="cycle through 500 of its 500"):
        Graph(np.zeros(500, int), [*chain.tolist(), (order[-1], order[0])])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"edges": [(0, 0)]}, "cycle through 1 of its 4"),
        ({"edges": [(1, 2), (2, 1)]}, "cycle through 2 of its 4"),
        ({"edges": [(0, 4)]}, "node 4"),
        ({"edges": [(-1, 0)]}, "node 0 or -1"),
        ({"edges": [(0, 1, 2)]}, "expected pairs"),
        ({"edges": [(0, 1), (0,)]}, "unequal length"),
        ({"edges": [(0, 1.5)]}, "whole numbers"),
        ({"edges": None}, "whole numbers"),
        ({"edges": 5}, "expected pairs"),
        ({"ops": []}, "at least one"),
        ({"ops": 3}, "at least one"),
        ({"ops": [[0, 1], [2, 3]]}, "shape (2, 2)"),
        ({"ops": [[0], [1, 2]]}, "unequal length"),
        ({"ops": [0, -1, 0, 0]}, "from 0 to 32767"),
        ({"ops": [0, 40000, 0, 0]}, "from 0 to 32767"),
        ({"ops": [0.0, 1, 2, 3]}, "whole numbers"),
        ({"attributes": [[1], [2]]}, "expected (4, K)"),
        ({"attributes": [1, 2, 3, 4]}, "expected (4, K)"),
        ({"attributes": [[1], [2, 3], [4], [5]]}, "no table"),
        ({"shapes": [[1], [2], [3], [float("nan")]]}, "no number"),
        ({"shapes": [[1, 2, 3]] * 4}, "expected (4, 4)"),
        ({"static": [[1]]}, "expected (F,)"),
        ({"static": ["large"]}, "no table"),
    ],
)
def test_wrong_parts_are_refused_in_one_line(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(GraphError) as caught:
        full(**parts)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_other_wrong_inputs() -> None:
    for matrix, ops in (([[0, 1]], [0, 1]), (np.zeros((3, 3)), [0, 1]), ([[0, 1], [0]], [0, 1]), ([[0]], 0)):
        with pytest.raises(GraphError, match=r"adjacency|unequal length"):
            Graph.from_adjacency(matrix, ops)
    with pytest.raises(GraphError, match="expected numbers"):
        Graph.from_adjacency([["", "x"], ["", ""]], [0, 1])
    for order in ([0, 1], [0, 1, 2, 2], 3, [[0, 1, 2, 3]], [0.0, 1.0, 2.0, 3.0]):
        with pytest.raises(GraphError, match=r"no order|whole numbers"):
            full().permuted(order)  # type: ignore[arg-type]
    for data in ({"ops": [0]}, {"ops": [0], "edges": [], "colour": 1}, [0]):
        with pytest.raises(GraphError, match="parts ops and edges"):
            Graph.from_dict(data)  # type: ignore[arg-type]
