"""Order of nodes, and inputs and outputs that graphs lack."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs, common_ends, lacking_ends, open_ended, topological, with_ends
from tests.predictor.graphs import random_graphs


def test_shuffled_nodes_come_into_an_order() -> None:
    stream = np.random.default_rng(0)
    graphs = random_graphs((7, 1, 6, 5) * 5, features=True)
    shuffled = [graph.permuted(stream.permutation(len(graph))) for graph in graphs]
    back = topological(Graphs.of(shuffled))
    assert (back.edges[:, 0] < back.edges[:, 1]).all() and (back.sizes == graphs.sizes).all()
    for mine, given in zip(back, shuffled, strict=True):
        pairs = [sorted(zip(g.ops[g.edges[:, 0]], g.ops[g.edges[:, 1]], strict=True)) for g in (mine, given)]
        assert pairs[0] == pairs[1] and sorted(mine.ops) == sorted(given.ops)
        assert mine.attributes is not None and given.attributes is not None
        np.testing.assert_array_equal(np.sort(mine.attributes.sum(1)), np.sort(given.attributes.sum(1)))
    np.testing.assert_array_equal(back.static, graphs.static)


def test_graphs_in_order_are_left_as_they_are() -> None:
    graphs = random_graphs((7, 6, 5))
    assert topological(graphs) is graphs
    one = Graphs.of([*graphs, Graph([1, 2, 3], [(2, 0), (0, 1)])])
    assert [list(graph.ops) for graph in topological(one)][-1] == [3, 1, 2]
    assert all(mine == given for mine, given in zip(topological(one), graphs, strict=False))


def test_the_first_of_several_that_may_come_next_comes_next() -> None:
    (graph,) = topological(Graphs.of([Graph([0, 1, 2, 3], [(3, 1)])]))
    assert list(graph.ops) == [0, 2, 3, 1]


@pytest.mark.parametrize(
    ("edges", "open_"),
    [([(0, 1), (1, 2)], False), ([(0, 2), (1, 2)], True), ([(0, 1), (0, 2)], True), ([], True)],
)
def test_which_graphs_are_open(edges: list[tuple[int, int]], open_: bool) -> None:
    graphs = Graphs.of([Graph([0, 1, 2], edges), Graph([0], [])])
    assert open_ended(graphs).tolist() == [open_, False]
    assert open_ended(graphs[:0]).shape == (0,)


def test_dead_branches_are_no_lacking_ends() -> None:
    whole = [Graph([0, 5 + index, 4], [(0, 1), (1, 2)]) for index in range(3)]
    dead = Graph([0, 5, 6, 4], [(0, 1), (0, 2), (1, 3)])
    other = Graph([5, 6, 4], [(0, 2), (1, 2)])
    graphs = Graphs.of([*whole, dead, other])
    assert common_ends(graphs) == (0, 4)
    assert open_ended(graphs).tolist() == [False] * 3 + [True] * 2
    assert lacking_ends(graphs, (0, 4)).tolist() == [False] * 4 + [True]
    assert lacking_ends(graphs, None).tolist() == open_ended(graphs).tolist()
    assert common_ends(Graphs.of([*whole, Graph([0, 5], [(0, 1)])])) is None
    assert common_ends(Graphs.of([dead])) is None and common_ends(graphs[:0]) is None


def test_ends_are_put_around() -> None:
    graphs = Graphs.of([Graph([3, 4, 5], [(0, 2)], attributes=[[1], [2], [3]]), Graph([6], [], attributes=[[7]])])
    first, second = with_ends(graphs, 8, 9)
    assert first == Graph(
        [8, 3, 4, 5, 9], [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)], attributes=[[0], [1], [2], [3], [0]]
    )
    assert second == Graph([8, 6, 9], [(0, 1), (1, 2)], attributes=[[0], [7], [0]])
    assert not open_ended(with_ends(random_graphs((5, 6, 7) * 9, features=True), 8, 9)).any()
