"""Ways through a graph by some operations, against counting path by path."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import Graph, Graphs
from nas_core.predictor.statistics.features import MOST_KINDS, sets_of, subset_statistics
from tests.predictor.graphs import paths_of, random_graphs

KINDS = 5
SETS = sets_of(np.arange(KINDS), KINDS)
_WHAT = ("longest way by", "shortest way by", "starts with", "ends with", "edges into each of", "edges out of each of")
NAMES = [f"{what} {'/'.join(map(str, np.flatnonzero(row)))}" for what in _WHAT for row in SETS]


def described(graphs: Graphs) -> np.ndarray:
    dense = graphs.dense()
    kinds = np.eye(KINDS)[dense.ops] * (np.arange(dense.ops.shape[1]) < dense.sizes[:, None])[..., None]
    return subset_statistics(dense.adjacency.astype(float), kinds, dense.sizes - 1, SETS)


def named(graph: Graph) -> dict[str, float]:
    row = described(Graphs.of([graph]))[0]
    assert len(row) == len(NAMES) == len(set(NAMES)) == 6 * 31
    return dict(zip(NAMES, row.tolist(), strict=True))


@pytest.mark.parametrize("index", range(12))
def test_ways_equal_an_enumeration(index: int) -> None:
    graph = random_graphs((7, 6, 5, 4) * 3, seed=3, density=0.6)[index]
    got = named(graph)
    for row, word in zip(SETS, (name.split()[-1] for name in NAMES), strict=False):
        within = [path for path in paths_of(graph) if all(row[graph.ops[node]] for node in path[1:-1])]
        lengths = [len(path) - 1 for path in within]
        assert got[f"longest way by {word}"] == max(lengths, default=0)
        assert got[f"shortest way by {word}"] == pytest.approx(1 / min(lengths) if lengths else 0)


def test_ends_and_degrees() -> None:
    graph = Graph([0, 2, 2, 1, 4], [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4), (0, 4)])
    got = named(graph)
    assert got["starts with 1"] == got["starts with 2"] == 1 and got["starts with 1/2"] == 2
    assert got["ends with 1/2"] == 2 and got["ends with 0/1"] == 2
    assert got["edges into each of 2"] == 1 and got["edges out of each of 0/1"] == 2
    assert got["longest way by 2"] == 3 and got["shortest way by 1/2"] == 1 and got["longest way by 1"] == 2


def test_of_many_kinds_there_are_no_sets_but_one_and_all_but_one() -> None:
    many = sets_of(np.arange(1, MOST_KINDS + 2), MOST_KINDS + 3)
    assert many.shape == (2 * (MOST_KINDS + 1) + 1, MOST_KINDS + 3)
    assert sorted(set(many.sum(1).tolist())) == [1, MOST_KINDS, MOST_KINDS + 1] and not many[:, 0].any()
    assert sets_of(np.arange(0), 3).shape == (0, 3)
