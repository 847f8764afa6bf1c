"""What statistics tell apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor.statistics.description import CHUNK, Vocabulary
from nas_core.predictor.statistics.features import graph_statistics
from tests.predictor.graphs import random_graphs

SIZES = (5, 6, 7, 3) * 6


@pytest.fixture(scope="module")
def rich() -> Graphs:
    return random_graphs(SIZES, features=True)


@pytest.mark.parametrize("features", [False, True])
def test_one_column_for_each_statistic(features: bool) -> None:
    graphs = random_graphs(SIZES, features=features)
    vocabulary = Vocabulary.of(graphs)
    described = vocabulary.describe(graphs)
    assert described.shape == (len(graphs), len(vocabulary)) and np.isfinite(described).all()
    np.testing.assert_array_equal(described[:, : 6**3 + 6**2 + 55], graph_statistics(graphs, 6))
    assert vocabulary.describe(graphs[:0]).shape == (0, len(vocabulary))


def test_predictions_of_graphs_do_not_depend_on_their_company(rich: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary.of(rich)
    together = vocabulary.describe(rich)
    monkeypatch.setattr("nas_core.predictor.statistics.description.CHUNK", 5)
    assert len(rich) < CHUNK
    np.testing.assert_allclose(vocabulary.describe(rich), together)


@pytest.mark.parametrize("feature", ["attributes", "shapes", "costs", "static"])
def test_each_feature_is_seen(feature: str, rich: Graphs) -> None:
    vocabulary = Vocabulary.of(rich)
    changed = replace(rich, **{feature: getattr(rich, feature)[::-1].copy()})
    assert not np.allclose(vocabulary.describe(changed), vocabulary.describe(rich))


def test_values_of_an_attribute_are_counted_one_by_one() -> None:
    """So that a linear model of the columns is one of one-hot codes of operation and place."""
    stream = np.random.default_rng(0)
    ops, chain = stream.integers(0, 4, (60, 6)), [(i, i + 1) for i in range(5)]
    graphs = Graphs.of([Graph(row, chain, attributes=np.arange(6.0)[:, None]) for row in ops])
    described = Vocabulary.of(graphs).describe(graphs)
    codes = np.eye(4)[ops].reshape(60, -1)
    weights = np.linalg.lstsq(described, codes, rcond=None)[0]
    np.testing.assert_allclose(described @ weights, codes, atol=1e-6)


def test_unknown_operations_and_values_are_described_too(rich: Graphs) -> None:
    vocabulary = Vocabulary.of(rich)
    other = replace(rich, ops=rich.ops + np.int16(300), attributes=rich.attributes + np.float32(0.25))
    assert np.isfinite(vocabulary.describe(other)).all()


def test_other_features_than_those_learned_from_are_refused(rich: Graphs) -> None:
    plain = random_graphs(SIZES)
    with pytest.raises(GraphError, match="features of nodes and networks: none; it learned from graphs: 8 attributes"):
        Vocabulary.of(rich).describe(plain)
    with pytest.raises(GraphError, match="4 static; it learned from graphs: none"):
        Vocabulary.of(plain).describe(rich)


@pytest.mark.parametrize("features", [False, True])
def test_tensors_hold_all_of_it(features: bool) -> None:
    graphs = random_graphs(SIZES, features=features)
    vocabulary = Vocabulary.of(graphs)
    again = Vocabulary.from_tensors(vocabulary.to_tensors())
    np.testing.assert_array_equal(again.describe(graphs), vocabulary.describe(graphs))
