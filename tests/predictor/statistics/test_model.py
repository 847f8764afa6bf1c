"""Processes and trees on graph statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor import kendall_tau
from nas_core.predictor.statistics import model as module
from nas_core.predictor.statistics.boosted_trees import BoostedTrees
from nas_core.predictor.statistics.model import StatisticsModel
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


def test_rows_are_means_of_each_kind_however_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(tuple([4, 5, 6, 7] * 15))
    wanted = np.array([float((graph.ops == 1).sum()) + 0.1 * len(graph.ops) for graph in graphs])
    model = StatisticsModel.fit(graphs, wanted, 2, 3, seed=0)
    rows = model.predict(graphs)
    assert rows.shape == (2, 60) and all(kendall_tau(row, wanted) > 0.7 for row in rows)
    only = StatisticsModel(model.processes, model.columns, (), model.description, model.mean, model.deviation)
    np.testing.assert_allclose(only.predict(graphs)[0], rows[0])
    monkeypatch.setattr(module, "CHUNK", 7)
    np.testing.assert_allclose(model.predict(graphs), rows)
    with pytest.raises(KeyError):
        StatisticsModel.from_tensors(model.to_tensors(), 2, 4)


def test_only_kinds_of_the_training_graphs_count_where_indices_are_large() -> None:
    def renamed(graphs: Graphs, names: list[int]) -> Graphs:
        return replace(graphs, ops=np.array(names)[graphs.ops].astype(np.int16))

    graphs, others = random_graphs(tuple([4, 5, 6, 7] * 8)), random_graphs((6, 7) * 9, seed=1)
    wanted = np.array([float((graph.ops == 1).sum()) for graph in graphs])
    spread = [3, 200, 7000, 9, 31_000]
    near = StatisticsModel.fit(graphs, wanted, 2, 2, seed=0)
    far = StatisticsModel.fit(renamed(graphs, spread), wanted, 2, 2, seed=0)
    assert near.description.vocabulary.kinds.tolist() == [
        0,
        1,
        2,
        3,
        4,
    ] and far.description.vocabulary.kinds.tolist() == sorted(spread)
    assert len(far.processes[0].mean) < 400
    unknown = [renamed(random_graphs((7,) * 9), [*spread[:4], last]) for last in (4, 8000, 32_000)]
    first, *more = (far.predict(graphs) for graphs in unknown)
    assert all(np.array_equal(first, each) for each in more) and np.isfinite(first).all()
    again = StatisticsModel.from_tensors(far.to_tensors(), 2, 2)
    np.testing.assert_array_equal(again.predict(renamed(others, spread)), far.predict(renamed(others, spread)))


def test_a_few_graphs_are_predicted_as_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs(tuple([4, 5, 6, 7] * 15))
    model = StatisticsModel.fit(graphs, np.array([float(len(graph.edges)) for graph in graphs]), 2, 3, seed=0)
    few = model.predict(graphs)
    monkeypatch.setattr(module, "FEW", 0)
    np.testing.assert_allclose(few, model.predict(graphs), rtol=1e-9)
