"""Statistics of graphs against counting path by path, and the columns that describe graphs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nas_core.graph import Graph, GraphError, Graphs, Operation, with_operations
from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.graph.nasbench201 import nasbench201_graph, nasbench201_graphs
from nas_core.predictor.statistics import features as module
from nas_core.predictor.statistics.features import (
    Description,
    Vocabulary,
    graph_statistics,
    sets_of,
    statistics_count,
)
from nas_core.predictor.statistics.operation_features import FEATURES, operation_features, subset_statistics
from tests.predictor.graphs import paths_of, random_graphs

KINDS = range(5)
SETS = sets_of(np.arange(5), 5)
NAMES = [
    *(f"nodes of {k}" for k in KINDS),
    *(f"edges {k}>{m}" for k in KINDS for m in KINDS),
    *(f"paths {k}>{m}>{n}" for k in KINDS for m in KINDS for n in KINDS),
    *(f"{what} of {k}" for what in ("edges into", "edges out") for k in KINDS),
    *(f"{what} is {k}" for what in ("a parent of the last", "a child of the first") for k in KINDS),
    *("nodes", "edges", "edges into the last", "edges out of the first", "log paths", "longest path", "shortest path"),
    *(f"{what} {k} on a path" for what in ("mean", "most", "least") for k in KINDS),
    *(
        f"{what} {'/'.join(map(str, np.flatnonzero(row)))}"
        for what in ("longest by", "shortest by", "starts with", "ends with", "edges into each", "edges out of each")
        for row in SETS
    ),
]
FORK = Graph([0, 2, 2, 1, 4], [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4), (0, 4)])
SIZES = (5, 6, 7, 3) * 6
CELLS = nasbench201_graphs(np.random.default_rng(0).integers(0, 5, (60, 6)))
BARE = replace(CELLS, operations=None)


def named(graph: Graph) -> dict[str, float]:
    graphs = Graphs.of([graph])
    dense = graphs.dense()
    kinds = np.eye(5)[dense.ops]
    subsets = subset_statistics(dense.adjacency.astype(float), kinds, dense.sizes - 1, SETS)
    row = np.concatenate([graph_statistics(graphs, 5), subsets], 1)[0]
    assert len(row) == len(NAMES) == len(set(NAMES)) == statistics_count(5) + 6 * len(SETS)
    return dict(zip(NAMES, row.tolist(), strict=True))


@pytest.mark.parametrize("index", range(8))
def test_paths_equal_an_enumeration(index: int) -> None:
    graph = random_graphs((7, 6, 5, 4) * 2, seed=3, density=0.6)[index]
    values, paths = named(graph), paths_of(graph)
    for row, word in zip(SETS, (name.split()[-1] for name in NAMES[statistics_count(5) :]), strict=False):
        lengths = [len(path) - 1 for path in paths if all(row[graph.ops[node]] for node in path[1:-1])]
        assert values[f"longest by {word}"] == max(lengths, default=0)
        assert values[f"shortest by {word}"] == pytest.approx(1 / min(lengths) if lengths else 0)
    if not paths:
        assert values["longest path"] == values["log paths"] == -1
        return
    assert values["log paths"] == pytest.approx(np.log1p(len(paths)))
    assert values["longest path"] == max(map(len, paths)) - 1 and values["shortest path"] == min(map(len, paths)) - 1
    for kind in KINDS:
        counts = [sum(int(graph.ops[node]) == kind for node in path[1:]) for path in paths]
        assert values[f"mean {kind} on a path"] == pytest.approx(np.mean(counts))
        assert (values[f"most {kind} on a path"], values[f"least {kind} on a path"]) == (max(counts), min(counts))


def test_edges_triples_and_ends() -> None:
    values = named(FORK)
    assert values["nodes of 2"] == 2 and values["nodes"] == 5 and values["edges"] == 6
    assert values["edges 2>2"] == 1 and values["edges 0>4"] == 1 and values["edges 4>0"] == 0
    assert values["edges into of 2"] == 2 and values["edges out of 0"] == 3
    assert values["edges into the last"] == 3 and values["edges out of the first"] == 3
    assert values["a parent of the last is 2"] == 1 and values["a child of the first is 4"] == 1
    triples = [t for t in [(0, 1, 2), (1, 2, 4), (0, 3, 4)] if all([*p] in FORK.edges.tolist() for p in pairwise(t))]
    assert values["paths 0>2>2"] == 1 and values["paths 2>2>4"] == 1 and values["paths 0>1>4"] == 1
    assert sum(value for name, value in values.items() if name.startswith("paths ")) == len(triples)
    assert values["starts with 1"] == values["starts with 2"] == 1 and values["starts with 1/2"] == 2
    assert values["ends with 1/2"] == 2 and values["ends with 0/1"] == 2
    assert values["edges into each 2"] == 1 and values["edges out of each 0/1"] == 2


@pytest.mark.parametrize("features", [False, True])
def test_columns_of_a_vocabulary(features: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(SIZES, features=features)
    vocabulary = Vocabulary.of(graphs)
    columns = vocabulary.describe(graphs)
    assert columns.shape == (len(graphs), len(vocabulary)) and np.isfinite(columns).all()
    np.testing.assert_array_equal(columns[:, : statistics_count(6)], graph_statistics(graphs, 6))
    assert vocabulary.describe(graphs[:0]).shape == (0, len(vocabulary))
    reloaded = Vocabulary.from_tensors(vocabulary.to_tensors())
    np.testing.assert_array_equal(reloaded.describe(graphs), columns)
    monkeypatch.setattr(module, "CHUNK", 5)  # statistics of a graph do not depend on the others
    np.testing.assert_allclose(vocabulary.describe(graphs), columns)
    for name in ("attributes", "shapes", "costs", "static") if features else ():
        changed = replace(graphs, **{name: getattr(graphs, name)[::-1].copy()})
        assert not np.allclose(vocabulary.describe(changed), columns), name
    unknown = replace(graphs, ops=graphs.ops + np.int16(300))
    assert np.isfinite(vocabulary.describe(unknown)).all()


def test_values_of_an_attribute_are_counted_one_by_one() -> None:
    """A linear model of the columns is one of one-hot codes of operation and place."""
    stream = np.random.default_rng(0)
    ops, chain = stream.integers(0, 4, (60, 6)), [(i, i + 1) for i in range(5)]
    graphs = Graphs.of([Graph(row, chain, attributes=np.arange(6.0)[:, None]) for row in ops])
    columns = Vocabulary.of(graphs).describe(graphs)
    codes = np.eye(4)[ops].reshape(60, -1)
    weights = np.linalg.lstsq(columns, codes, rcond=None)[0]
    np.testing.assert_allclose(columns @ weights, codes, atol=1e-6)


def test_descriptions_of_operations_add_columns_in_front() -> None:
    full, bare = Description.of(CELLS), Description.of(BARE)
    assert len(full) == len(bare) + len(FEATURES)
    columns = full.describe(CELLS)
    np.testing.assert_array_equal(columns[:, len(FEATURES) :], bare.describe(BARE))
    np.testing.assert_array_equal(full.describe(BARE), columns)  # they mean what the training graphs meant
    others = [*(CELLS.operations or ())]
    others[1], others[2] = others[2], others[1]
    with pytest.raises(GraphError, match=r"operation 1 of these graphs is Operation\("):
        full.describe(with_operations(CELLS, others))


def test_a_description_comes_back_from_its_tensors() -> None:
    table = [Operation("end"), Operation("convolution", 3, 2, 2, 0.5, 6.0, 0, 2), Operation("pooling", 5, average=True)]
    graphs = with_operations(replace(BARE, ops=(BARE.ops % 3).astype(np.int16)), table)
    description = Description.of(graphs)
    reloaded = Description.from_tensors(description.to_tensors())
    assert reloaded.operations == tuple(table)
    np.testing.assert_array_equal(reloaded.describe(graphs), description.describe(graphs))


PATHS = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
"""input -> 1 -> 2 -> output, input -> 3 -> output"""


def features(graph: Graph) -> dict[str, float]:
    return dict(zip(FEATURES, operation_features(Graphs.of([graph]))[0].tolist(), strict=True))


def two_paths(*names: str | Operation) -> dict[str, float]:
    return features(with_operations(Graph([0, 1, 2, 3, 4], PATHS), ["input", *names, "output"]))


def test_sums_of_operations_along_paths() -> None:
    values = two_paths("conv3x3", "conv1x1", "max_pool_3x3")
    assert values["sum of convolutions"] == 2 and values["sum of weights"] == 10 and values["sum of spatial"] == 1
    assert values["mean of convolutions"] == 1 and values["most convolutions"] == 2
    assert values["least convolutions"] == 0
    assert values["mean of pooling"] == values["walks' mean of pooling"] == values["ends at pooling"] == 0.5
    assert values["log ways"] == pytest.approx(np.log(3)) and values["operations"] == 3 and values["connected"] == 1
    assert values["least receptive field"] == values["most receptive field"] == pytest.approx(np.log1p(2))
    assert values["ways without pooling"] == values["ways without spatial"] == 0.5
    assert values["ends after spatial"] == 0.5 and values["ends at convolutions"] == 0.5
    assert values["longest way by convolutions"] == 3 and values["shortest way by pooling"] == 0.5
    assert values["log FLOPs"] == values["log parameters"] == pytest.approx(np.log(10.5))
    assert values["log activations"] == pytest.approx(np.log(2.5))


def test_resolution_and_channels() -> None:
    halved = two_paths(Operation("convolution", 3, stride=2, channels=2.0), "conv3x3", "identity")
    assert halved["log parameters"] == pytest.approx(np.log(9 * 2 + 9 * 4 + 0.5))
    assert halved["log FLOPs"] == pytest.approx(np.log((9 * 2 + 9 * 4) / 4 + 0.5))
    assert halved["log activations"] == pytest.approx(np.log(2 * 2 / 4 + 0.5))
    grouped = two_paths(Operation("convolution", 3, groups=3), "linear", "identity")
    plain, expanded = two_paths("sep_conv_3x3", "linear", "identity"), two_paths("k3_e6", "linear", "none")
    assert grouped["sum of weights"] == 4 and plain["sum of weights"] == pytest.approx(2 * (9 / 32 + 1) + 1)
    assert plain["sum of convolutions"] == 3 and expanded["sum of weights"] == pytest.approx(6 * 9 / 32 + 13)


def test_equal_networks_of_different_spaces_have_equal_features() -> None:
    cell = np.zeros((4, 4))
    cell[[0, 1, 2], [1, 2, 3]] = 1
    first = nasbench101_graph(cell, ["input", "conv3x3-bn-relu", "conv1x1-bn-relu", "output"])
    second = nasbench201_graph("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|nor_conv_1x1~1|none~2|")
    assert features(first) == features(second)


def test_networks_with_several_inputs_and_without_a_path() -> None:
    table = ["input", "conv3x3", "output"]
    several = with_operations(Graph([0, 0, 1, 1, 2], [(0, 2), (1, 3), (2, 4), (3, 4)]), table)
    assert features(several)["log ways"] == pytest.approx(np.log(3)) and features(several)["connected"] == 1
    loose = with_operations(Graph([0, 1, 2], []), table)
    together = operation_features(Graphs.of([several, loose, several]))
    assert np.isfinite(together).all() and np.array_equal(together[0], together[2])
    np.testing.assert_array_equal(together[1], operation_features(Graphs.of([loose]))[0])
    assert operation_features(Graphs.of([several]).take([])).shape == (0, len(FEATURES))
