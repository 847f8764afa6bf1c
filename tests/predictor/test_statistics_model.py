"""Processes and trees on graph statistics."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.errors import DataError
from nas_core.predictor import kendall_tau
from nas_core.predictor import statistics_model as module
from nas_core.predictor.boosted_trees import BoostedTrees
from nas_core.predictor.statistics_model import StatisticsModel
from tests.predictor.graphs import random_graphs


def test_trees_learn_a_threshold_and_come_back_from_bytes() -> None:
    stream = np.random.default_rng(0)
    values, unseen = stream.normal(size=(200, 6)), stream.normal(size=(300, 6))
    trees = BoostedTrees.fit(values, np.where(values[:, 2] > 0.5, 1.0, -1.0))
    assert np.mean((trees.predict(unseen) > 0) == (unseen[:, 2] > 0.5)) > 0.97
    again = BoostedTrees.from_tensor(trees.to_tensor())
    np.testing.assert_array_equal(again.predict(unseen), trees.predict(unseen))
    assert trees.predict(unseen[:0]).shape == (0,)
    same = BoostedTrees.fit(values, np.where(values[:, 2] > 0.5, 1.0, -1.0))
    assert same.text == trees.text


@pytest.mark.parametrize("text", ["", "tree", "no model\n" * 100])
def test_damaged_trees_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        BoostedTrees.from_tensor(torch.tensor(list(text.encode()), dtype=torch.uint8))


def test_few_graphs_are_enough() -> None:
    graphs = random_graphs((4, 6))
    model = StatisticsModel.fit(graphs, np.array([1.0, 2.0]), 2, 2, seed=0)
    assert np.isfinite(model.predict(graphs)).all()


def test_rows_are_means_of_each_kind_however_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(tuple([4, 5, 6, 7] * 15))
    wanted = np.array([float((graph.ops == 1).sum()) + 0.1 * len(graph.ops) for graph in graphs])
    model = StatisticsModel.fit(graphs, wanted, 2, 3, seed=0)
    rows = model.predict(graphs)
    assert rows.shape == (2, 60) and all(kendall_tau(row, wanted) > 0.7 for row in rows)
    only = StatisticsModel(model.processes, model.columns, (), model.operations, model.mean, model.deviation)
    np.testing.assert_allclose(only.predict(graphs)[0], rows[0])
    monkeypatch.setattr(module, "CHUNK", 7)
    np.testing.assert_allclose(model.predict(graphs), rows)
    with pytest.raises(KeyError):
        StatisticsModel.from_tensors(model.to_tensors(), 2, 4)
