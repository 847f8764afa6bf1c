"""Graphs as values, sets of graphs, input and output nodes, and descriptions of operations."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from nas_core.graph import (
    Graph,
    Graphs,
    Operation,
    with_operations,
)
from nas_core.graph.graph import FEATURES
from nas_core.graph.io_nodes import common_ends, missing_ends, open_ended, topological, with_ends
from nas_core.graph.operation import operation_named
from tests.predictor.graphs import random_graphs

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


def test_permuted_is_the_same_network() -> None:
    graph, order = full(), [2, 0, 3, 1]
    moved = graph.permuted(order)
    assert np.array_equal(moved.adjacency, graph.adjacency[np.ix_(order, order)])
    for name in ("ops", "attributes", "shapes", "costs"):
        assert np.array_equal(getattr(moved, name), getattr(graph, name)[order])
    assert np.array_equal(moved.static, graph.static)  # type: ignore[arg-type]
    assert moved != graph and moved.permuted(np.argsort(order)) == graph


def some(count: int = 30, seed: int = 0, parts: bool = False) -> list[Graph]:
    """Graphs of 1 to 6 nodes, not in topological order, some of them equal."""
    rng = np.random.default_rng(seed)
    created = []
    for _ in range(count):
        size = int(rng.integers(1, 7))
        matrix = np.triu(rng.random((size, size)) < 0.5, 1)
        more: dict[str, Any] = {}
        if parts:
            more = {"attributes": rng.random((size, 3)), "shapes": rng.random((size, 4)), "static": rng.random(2)}
            more["costs"] = rng.random((size, 3))
        created.append(Graph.from_adjacency(matrix, rng.integers(0, 3, size), **more).permuted(rng.permutation(size)))
    return created


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
    wide = graphs.take([4, 2]).dense(width=9)
    assert wide.ops.shape == (2, 9) and wide.sizes.tolist() == [len(single[4]), len(single[2])]
    assert list(Graphs.from_dense(wide.ops, wide.adjacency.astype(float), wide.sizes)) == [single[4], single[2]]


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


def test_shuffled_nodes_come_into_an_order() -> None:
    stream = np.random.default_rng(0)
    graphs = random_graphs((7, 1, 6, 5) * 5, features=True)
    shuffled = [graph.permuted(stream.permutation(len(graph))) for graph in graphs]
    back = topological(Graphs.of(shuffled))
    assert (back.edges[:, 0] < back.edges[:, 1]).all() and (back.sizes == graphs.sizes).all()
    for mine, original in zip(back, shuffled, strict=True):
        pairs = [sorted(zip(g.ops[g.edges[:, 0]], g.ops[g.edges[:, 1]], strict=True)) for g in (mine, original)]
        assert pairs[0] == pairs[1] and sorted(mine.ops) == sorted(original.ops)
        assert mine.attributes is not None and original.attributes is not None
        np.testing.assert_array_equal(np.sort(mine.attributes.sum(1)), np.sort(original.attributes.sum(1)))
    np.testing.assert_array_equal(back.static, graphs.static)


def test_graphs_in_order_are_left_as_they_are() -> None:
    graphs = random_graphs((7, 6, 5))
    assert topological(graphs) is graphs
    graphs_with_unordered = Graphs.of([*graphs, Graph([1, 2, 3], [(2, 0), (0, 1)])])
    assert [list(graph.ops) for graph in topological(graphs_with_unordered)][-1] == [3, 1, 2]
    assert all(mine == given for mine, given in zip(topological(graphs_with_unordered), graphs, strict=False))


def test_dead_branches_are_no_lacking_ends() -> None:
    full = [Graph([0, 5 + index, 4], [(0, 1), (1, 2)]) for index in range(3)]
    dead = Graph([0, 5, 6, 4], [(0, 1), (0, 2), (1, 3)])
    other = Graph([5, 6, 4], [(0, 2), (1, 2)])
    graphs = Graphs.of([*full, dead, other])
    assert common_ends(graphs) == (0, 4)
    assert open_ended(graphs).tolist() == [False] * 3 + [True] * 2
    assert missing_ends(graphs, (0, 4)).tolist() == [False] * 4 + [True]
    assert missing_ends(graphs, None).tolist() == open_ended(graphs).tolist()
    assert common_ends(Graphs.of([*full, Graph([0, 5], [(0, 1)])])) is None
    assert common_ends(Graphs.of([dead])) is None and common_ends(graphs[:0]) is None


def test_ends_are_put_around() -> None:
    graphs = Graphs.of([Graph([3, 4, 5], [(0, 2)], attributes=[[1], [2], [3]]), Graph([6], [], attributes=[[7]])])
    first, second = with_ends(graphs, 8, 9)
    assert first == Graph(
        [8, 3, 4, 5, 9], [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)], attributes=[[0], [1], [2], [3], [0]]
    )
    assert second == Graph([8, 6, 9], [(0, 1), (1, 2)], attributes=[[0], [7], [0]])
    assert not open_ended(with_ends(random_graphs((5, 6, 7) * 9, features=True), 8, 9)).any()


CHAIN = Graph([0, 1, 2], [(0, 1), (1, 2)])


NAMES = ["input", "conv3x3-bn-relu", "output"]


@pytest.mark.parametrize(
    ("name", "does"),
    [
        ("nor_conv_3x3", {"kernel": 3}),
        ("conv1x1-bn-relu", {"kernel": 1}),
        ("Conv_5x5", {"kernel": 5}),
        ("conv_7x1_1x7", {"kernel": 7}),
        ("conv5d2", {"kernel": 5, "dilation": 2}),
        ("sep_conv_5x5", {"kernel": 5, "groups": 0, "repeats": 2}),
        ("dil_conv_3x3", {"kernel": 3, "groups": 0, "dilation": 2}),
        ("k3_e6", {"kernel": 3, "groups": 0, "expansion": 6.0}),
        ("k5_e1_g2", {"kernel": 5, "groups": 0}),
    ],
)
def test_names_of_convolutions(name: str, does: dict[str, Any]) -> None:
    assert operation_named(name) == Operation("convolution", **does)


def test_names_of_other_operations() -> None:
    assert operation_named("max_pool_3x3") == operation_named("maxpool3x3") == Operation("pooling", 3)
    assert operation_named("avg_pool_5x5") == Operation("pooling", 5, average=True)
    assert operation_named("skip_connect") == operation_named(" identity ") == Operation("identity")
    assert operation_named("none") == Operation("none") and operation_named("linear") == Operation("linear")
    assert {operation_named(name) for name in ("input", "normal_input_0", "output")} == {Operation("end")}
    assert [operation_named(name) for name in ("", "conv", "normal", "xconv_3x3", "pool", "einput2")] == [None] * 6


def test_graphs_keep_what_their_operations_do() -> None:
    graph = with_operations(CHAIN, NAMES)
    assert graph.operations == (Operation("end"), Operation("convolution", 3), Operation("end"))
    assert graph == CHAIN and hash(graph) == hash(CHAIN) and CHAIN.operations is None
    assert pickle.loads(pickle.dumps(graph)).operations == graph.operations
    many = with_operations([CHAIN, CHAIN], NAMES)
    assert many.operations == graph.operations == Graphs.of([graph, graph]).operations
    kept = (many[0], many[:1], many.take([1]), graph.permuted([0, 1, 2]))
    assert all(each.operations == graph.operations for each in kept)
    assert Graphs.of([graph, CHAIN]).operations == graph.operations
