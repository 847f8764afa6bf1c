"""Each latency model of whole networks through the contract, and what is special about NN-Former and the ensemble."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph.base import GraphLatencyModel, class_shares
from nas_core.latency.by_graph.counts import CountsModel
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.nn_former import NNFormerModel, NNFormerReleasedModel, check_unpriced
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.metrics import mape
from tests.contracts.network_model import NetworkModelContract
from tests.latency.by_graph.toy import toy_networks

BARELY: dict[str, Any] = {"dim": 16, "depth": 1, "epochs": 2}


class TestFlops(NetworkModelContract):
    name = "flops"


class TestCounts(NetworkModelContract):
    name = "counts"


class TestGraphSage(NetworkModelContract):
    name = "graphsage"
    settings = {"dim": 32, "layers": 2, "epochs": 20, "lr": 1e-2}  # noqa: RUF012 - never changed


class TestKernelSum(NetworkModelContract):
    name = "kernel-sum"
    settings = {"width": 16, "epochs": 30, "batch_size": 8, "members": 2}  # noqa: RUF012 - never changed

    def test_spread_grows_with_the_prediction(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        predicted, spread = fitted.predict_with_std(data.graphs)
        assert np.array_equal(predicted, fitted.predict(data.graphs))
        assert (spread >= predicted * fitted.relative_spread).all() and (spread > 0).all()


class TestNNFormer(NetworkModelContract):
    name = "nn-former"
    settings = {"dim": 32, "depth": 1, "epochs": 40, "lr": 5e-3, "batch_size": 4}  # noqa: RUF012 - never changed


class TestNNFormerReleased(NetworkModelContract):
    name = "nn-former-released"
    settings = {"dim": 32, "depth": 1, "epochs": 60, "lr": 3e-3}  # noqa: RUF012 - never changed


class TestEnsemble(NetworkModelContract):
    name = "ensemble"
    settings = {"epochs": 6}  # noqa: RUF012 - never changed

    def test_spread_grows_with_the_prediction(self, fitted: GraphLatencyModel, data: NetworkLatencies) -> None:
        """Beyond the residuals, members disagree."""
        predicted, spread = fitted.predict_with_std(data.graphs)
        train = data.in_domain()[0]
        first, second = (
            cls(epochs=6).fit(train, seed=1).predict(data.graphs) for cls in (NNFormerModel, GraphSageModel)
        )
        assert predicted == pytest.approx(np.sqrt(first * second))
        disagreement = abs(np.log(first / second)) / np.sqrt(2)
        assert spread == pytest.approx(predicted * np.hypot(fitted.relative_spread, disagreement))


def test_prices_generalise_to_an_unseen_family() -> None:
    train, test = toy_networks(60).out_of_domain("mixed")
    priced, released = (
        mape(cls(**BARELY).fit(train).predict(test.graphs), test.latency_ms)
        for cls in (NNFormerModel, NNFormerReleasedModel)
    )
    assert priced < 10 < 20 < released


def test_a_priced_file_has_the_ratio_and_the_prices(tmp_path: Path) -> None:
    data, path = toy_networks(20), tmp_path / "m.safetensors"
    model = NNFormerModel(**BARELY, members=2).fit(data)
    model.save(path)
    inner = NNFormerPredictor.load(path)
    ratio, deviation = inner.predict_with_std(data.graphs)
    counts = CountsModel().fit(data).predict(data.graphs)
    predicted, spread = model.predict_with_std(data.graphs)
    assert predicted == pytest.approx(counts * ratio)
    assert spread**2 == pytest.approx((predicted * model.relative_spread) ** 2 + (counts * deviation) ** 2)
    assert np.array_equal(load_latency_model(path, "graph").predict(data.graphs), predicted)
    with pytest.raises(ConfigError, match="not an accuracy predictor"):
        check_unpriced(inner, path)


def test_files_of_the_published_model_are_predictors(tmp_path: Path) -> None:
    data, path = toy_networks(20), tmp_path / "m.safetensors"
    model = NNFormerReleasedModel(**BARELY).fit(data)
    model.save(path)
    predictor = NNFormerPredictor.load(path)
    assert predictor.predict(data.graphs).tolist() == pytest.approx(model.predict(data.graphs).tolist())
    assert check_unpriced(predictor, path).fitted
    CountsModel().fit(data).save(path)
    with pytest.raises(DataError, match="not an accuracy predictor"):
        NNFormerPredictor.load(path)


def test_a_model_adapts_to_another_machine_by_class_of_operator(tmp_path: Path) -> None:
    here, there = toy_networks(60), toy_networks(90, seed=1)
    shares = class_shares(there.graphs)
    factors = np.exp(shares @ [0.5, -0.4, 0.0, 0.2] + 0.7)
    noise = np.random.default_rng(2).lognormal(0, 0.05, 90)
    there = replace(there, latency_ms=CountsModel().fit(here).predict(there.graphs) * factors * noise)
    learned, asked = there.take(np.arange(20)), there.take(np.arange(20, 90))
    model = CountsModel().fit(here)
    before = mape(model.predict(asked.graphs), asked.latency_ms)
    model.adapt(learned, {"device_name": "other"})
    predicted, deviation = model.predict_with_std(asked.graphs)
    assert before > 50 and mape(predicted, asked.latency_ms) < 8 and model.machine == "other"
    assert 0.55 < np.mean(np.abs(predicted - asked.latency_ms) < deviation) < 0.85
    model.save(tmp_path / "m.safetensors")
    again = load_latency_model(tmp_path / "m.safetensors", "graph").predict(asked.graphs)
    np.testing.assert_allclose(again, predicted)
    model.adapt(learned, {"device_name": "other"})  # from the original machine again
    np.testing.assert_allclose(model.predict(asked.graphs), predicted)
    with pytest.raises(DataError, match="9 networks"):
        model.adapt(learned.take(np.arange(9)), {"device_name": "other"})
