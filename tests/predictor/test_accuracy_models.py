"""Each accuracy model through the contract, and graphs without one input and one output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from nas_core.graph import Graph, Graphs
from nas_core.predictor import (
    ACCURACY_MODELS,
    StatisticsPredictor,
    kendall_tau,
    load_accuracy_model,
)
from nas_core.predictor.base import parsed_accuracy_settings
from tests.contracts.accuracy_model import AccuracyModelContract
from tests.predictor.graphs import random_graphs, sizes_of_operations

pytestmark = pytest.mark.usefixtures("few_steps")


class TestNNFormer(AccuracyModelContract):
    name = "nn-former"
    settings = {"dim": 32, "depth": 2, "epochs": 20, "lr": 2e-3}  # noqa: RUF012 - never changed
    order_matters = True
    has_std = False


class TestEnsemble(AccuracyModelContract):
    name = "nn-former"
    settings = {"recipe": "ensemble", "members": 2, "dim": 32, "depth": 1, "epochs": 10}  # noqa: RUF012 - never changed
    order_matters = True


class TestStatistics(AccuracyModelContract):
    name = "statistics"
    settings = {"processes": 1, "trees": 1}  # noqa: RUF012 - never changed
    order_matters = True


class TestAdditive(AccuracyModelContract):
    name = "additive"


def test_each_member_has_its_contract() -> None:
    tested = {case.name for case in AccuracyModelContract.__subclasses__() if case.__module__ == __name__}
    own = {name for name, model in ACCURACY_MODELS.items() if model.__module__.startswith("nas_core.")}
    assert own - tested == {"prior"}  # has a file of its own
    assert all(model.name == name for name, model in ACCURACY_MODELS.items())


@pytest.mark.parametrize("places", [False, True])
def test_an_additive_model_learns_sums_from_few_graphs_with_a_deviation_that_holds(places: bool) -> None:
    stream = np.random.default_rng(3)
    ops, links = stream.integers(0, 4, (400, 6)), [(i, i + 1) for i in range(5)]
    costs = stream.uniform(1, 9, (6, 4)) if places else np.tile(stream.uniform(1, 9, 4), (6, 1))
    graphs = Graphs.of([Graph(row, links) for row in ops])
    exact = costs[np.arange(6), ops].sum(1)
    few, many = (60, 200) if places else (12, 200)
    model = ACCURACY_MODELS.get("additive")().fit(graphs[:few], exact[:few])
    np.testing.assert_allclose(model.predict(graphs[few:]), exact[few:], rtol=0.01)
    noisy = exact * stream.lognormal(0, 0.1, 400)
    model.fit(graphs[:many], noisy[:many])
    predicted, deviation = model.predict_with_std(graphs[many:])
    assert 0.55 < np.mean(np.abs(noisy[many:] - predicted) < deviation) < 0.8


def test_settings_have_their_types() -> None:
    assert parsed_accuracy_settings("nn-former", ["recipe=ensemble", "epochs=3"]) == {"recipe": "ensemble", "epochs": 3}


@pytest.mark.parametrize("case", [TestNNFormer, TestStatistics])
def test_features_of_the_whole_network_are_read(case: type[AccuracyModelContract]) -> None:
    values = np.random.default_rng(0).permutation(np.arange(40.0))  # what no graph shows
    graphs, shown = random_graphs((6,) * 40, seed=5), np.stack([4 + ndtri((values + 0.5) / 40), np.full(40, 4.0)], 1)
    described = replace(graphs, static=shown.astype(np.float32))
    model = case.make().fit(described, values / 40)
    others = replace(graphs, static=described.static[::-1].copy())  # type: ignore[index]
    first, second = (kendall_tau(model.predict(each), values) for each in (described, others))
    assert first > second + 0.2


def test_as_many_errors_are_within_the_standard_deviation_as_should(graphs: Graphs, targets: np.ndarray) -> None:
    others = random_graphs((5, 6, 7) * 60, seed=2)
    predicted, std = StatisticsPredictor(processes=2, trees=2).fit(graphs, targets).predict_with_std(others)
    off = np.abs(predicted - sizes_of_operations(others)) / std
    assert 0.5 < np.mean(off <= 1) < 0.9 and np.mean(off <= 2) > 0.85


def test_graphs_without_ends_get_them(tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    forks = [Graph(stream.integers(0, 3, 5), [(0, 2), (1, 2), (2, 3), (2, 4)]) for _ in range(60)]
    expected = np.array([float(graph.ops[0] == 1) + float(graph.ops[1] == 1) for graph in forks])
    model = StatisticsPredictor(processes=1, trees=1, unseen="ignore").fit(forks, expected)
    model.save(tmp_path / "m.safetensors")
    loaded = load_accuracy_model(tmp_path / "m.safetensors")
    np.testing.assert_allclose(loaded.predict(forks), model.predict(forks), rtol=1e-12)
    np.testing.assert_allclose(loaded.predict(forks), expected, atol=0.1)
    # The added ends have the indices 3 and 4, which are unseen operations in these graphs.
    unseen = [Graph([index, 1, 1, 1, 1], [(0, 2), (1, 2), (2, 3), (2, 4)]) for index in (3, 4, 10)]
    assert len({model.predict([graph])[0] for graph in unseen}) == 1
