"""Each latency model of whole networks through the contract, and what is special about NN-Former and the ensemble."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.nn_former import NNFormerModel
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.metrics import mape
from nas_core.predictor.recipes import get_recipe
from tests.contracts.network_model import NetworkModelContract
from tests.latency.by_graph.toy import toy_networks

BARELY: dict[str, Any] = {"dim": 16, "depth": 1, "epochs": 2}


class TestCounts(NetworkModelContract):
    name = "counts"


class TestGraphSage(NetworkModelContract):
    name = "graphsage"
    settings = {"dim": 32, "layers": 2, "epochs": 20, "lr": 1e-2}  # noqa: RUF012 - never changed


class TestNNFormer(NetworkModelContract):
    name = "nn-former"
    settings = {"dim": 32, "depth": 1, "epochs": 40, "lr": 5e-3, "batch_size": 4}  # noqa: RUF012 - never changed


class TestEnsemble(NetworkModelContract):
    name = "ensemble"
    settings = {"epochs": 6}  # noqa: RUF012 - never changed

    def test_spread_grows_with_the_prediction(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        """Beyond the residuals, members disagree."""
        predicted, std = fitted.predict_with_std(data.graphs)
        train = data.in_domain()[0]
        first, second = (
            cls(epochs=6).fit(train, seed=1).predict(data.graphs) for cls in (NNFormerModel, GraphSageModel)
        )
        assert predicted == pytest.approx(np.sqrt(first * second))
        disagreement = abs(np.log(first / second)) / np.sqrt(2)
        assert std == pytest.approx(predicted * np.hypot(fitted.relative_std, disagreement))


def test_prices_generalise_to_an_unseen_family() -> None:
    networks = toy_networks(60)
    train, test = networks.take(networks.families != "mixed"), networks.take(networks.families == "mixed")
    recipe = get_recipe("network-latency").with_changes(**BARELY)
    alone = NNFormerPredictor(recipe, unseen="ignore").fit(train.graphs, train.latency_ms)
    priced = NNFormerModel(**BARELY).fit(train)
    assert mape(priced.predict(test.graphs), test.latency_ms) < 10
    assert mape(alone.predict(test.graphs), test.latency_ms) > 20


def test_a_file_has_the_ratio_and_the_prices(tmp_path: Path) -> None:
    data, path = toy_networks(20), tmp_path / "m.safetensors"
    model = NNFormerModel(**BARELY, members=2).fit(data)
    counts = CountsModel().fit(data).predict(data.graphs)
    recipe = get_recipe("network-latency").with_changes(**BARELY, members=2)
    inner = NNFormerPredictor(recipe, seed=0, unseen="ignore").fit(data.graphs, data.latency_ms / counts)
    ratio, deviation = inner.predict_with_std(data.graphs)
    predicted, std = model.predict_with_std(data.graphs)
    assert predicted == pytest.approx(counts * ratio)
    assert std**2 == pytest.approx((predicted * model.relative_std) ** 2 + (counts * deviation) ** 2)
    model.save(path)
    assert np.array_equal(load_latency_model(path, "graph").predict(data.graphs), predicted)
    with pytest.raises(DataError, match="not an accuracy predictor"):
        NNFormerPredictor.load(path)


def test_a_model_adapts_to_another_machine(tmp_path: Path) -> None:
    here, there = toy_networks(60), toy_networks(90, seed=1)
    noise = np.random.default_rng(2).lognormal(0, 0.05, 90)
    there = replace(there, latency_ms=2 * CountsModel().fit(here).predict(there.graphs) * noise)
    learned, asked = there.take(np.arange(20)), there.take(np.arange(20, 90))
    model = CountsModel().fit(here)
    before = mape(model.predict(asked.graphs), asked.latency_ms)
    model.adapt(learned, {"device_name": "other"})
    predicted, deviation = model.predict_with_std(asked.graphs)
    predicted_learned = model.predict(learned.graphs)
    assert before > 40 and mape(predicted, asked.latency_ms) < 8 and model.machine == "other"
    assert 0.55 < np.mean(np.abs(predicted - asked.latency_ms) < deviation) < 0.85
    model.save(tmp_path / "m.safetensors")
    again = load_latency_model(tmp_path / "m.safetensors", "graph").predict(asked.graphs)
    np.testing.assert_allclose(again, predicted)
    assert model.info["held_out"]["mape_before_percent"] == pytest.approx(
        mape(CountsModel().fit(here).predict(learned.graphs), learned.latency_ms)
    )
    model.adapt(learned, {"device_name": "other"})  # from the original machine again
    assert model.info["held_out"]["mape_before_percent"] == pytest.approx(mape(predicted_learned, learned.latency_ms))
    np.testing.assert_allclose(model.predict(asked.graphs), predicted)
    with pytest.raises(DataError, match="9 networks"):
        model.adapt(learned.take(np.arange(9)), {"device_name": "other"})
