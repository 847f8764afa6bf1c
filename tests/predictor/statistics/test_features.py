"""Graph statistics against counting path by path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor.statistics.features import graph_statistics, statistics_count
from tests.predictor.graphs import paths_of, random_graphs

OPERATIONS = 5
KINDS = range(OPERATIONS)
NAMES = [
    *(f"nodes of {k}" for k in KINDS),
    *(f"edges {k}>{m}" for k in KINDS for m in KINDS),
    *(f"paths {k}>{m}>{n}" for k in KINDS for m in KINDS for n in KINDS),
    *(f"{what} of {k}" for what in ("edges into", "edges out") for k in KINDS),
    *(f"{what} is {k}" for what in ("a parent of the last", "a child of the first") for k in KINDS),
    *("nodes", "edges", "edges into the last", "edges out of the first", "log paths", "longest path", "shortest path"),
    *(f"{what} {k} on a path" for what in ("mean", "most", "least") for k in KINDS),
]
assert statistics_count(OPERATIONS) == len(NAMES)


def named(graph: Graph) -> dict[str, float]:
    row = graph_statistics(Graphs.of([graph]), OPERATIONS)[0]
    assert len(row) == len(NAMES) == len(set(NAMES))
    return dict(zip(NAMES, row.tolist(), strict=True))


@pytest.mark.parametrize("index", range(12))
def test_paths_equal_an_enumeration(index: int) -> None:
    graph = random_graphs((7, 6, 5, 4) * 3, seed=3, density=0.6)[index]
    got, paths = named(graph), paths_of(graph)
    if not paths:
        assert got["longest path"] == got["log paths"] == -1
        return
    assert got["log paths"] == pytest.approx(np.log1p(len(paths)))
    assert got["longest path"] == max(map(len, paths)) - 1
    assert got["shortest path"] == min(map(len, paths)) - 1
    for kind in range(OPERATIONS):
        met = [sum(int(graph.ops[node]) == kind for node in path[1:]) for path in paths]
        assert got[f"mean {kind} on a path"] == pytest.approx(np.mean(met))
        assert (got[f"most {kind} on a path"], got[f"least {kind} on a path"]) == (max(met), min(met))


def test_edges_and_triples() -> None:
    graph = Graph([0, 2, 2, 1, 4], [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4), (0, 4)])
    got = named(graph)
    assert got["nodes of 2"] == 2 and got["nodes"] == 5 and got["edges"] == 6
    assert got["edges 2>2"] == 1 and got["edges 0>4"] == 1 and got["edges 4>0"] == 0
    assert got["paths 0>2>2"] == 1 and got["paths 2>2>4"] == 1 and got["paths 0>1>4"] == 1
    assert got["edges into of 2"] == 2 and got["edges out of 0"] == 3
    assert got["edges into the last"] == 3 and got["edges out of the first"] == 3
    assert got["a parent of the last is 2"] == 1 and got["a child of the first is 4"] == 1
    triples = [
        path
        for path in [(0, 1, 2), (1, 2, 4), (0, 3, 4)]
        if all(list(p) in graph.edges.tolist() for p in pairwise(path))
    ]
    assert sum(value for name, value in got.items() if name.startswith("paths ")) == len(triples)


def test_graphs_of_other_sizes_do_not_matter() -> None:
    graphs = random_graphs((3, 7, 5, 2))
    together = graph_statistics(graphs, OPERATIONS)
    alone = np.concatenate([graph_statistics(graphs[i : i + 1], OPERATIONS) for i in range(len(graphs))])
    np.testing.assert_allclose(together, alone)
    assert graph_statistics(graphs[:0], OPERATIONS).shape == (0, len(NAMES))


def test_wrong_graphs() -> None:
    with pytest.raises(GraphError, match="operation index 4"):
        graph_statistics(Graphs.of([Graph([0, 4], [(0, 1)])]), 4)
    with pytest.raises(GraphError, match="topological"):
        graph_statistics(Graphs.of([Graph([0, 1], [(1, 0)])]), 4)
