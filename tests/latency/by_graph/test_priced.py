"""NN-Former learns a factor on the priced operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import ConfigError
from nas_core.latency import latency_model, load_latency_model
from nas_core.latency.by_graph import GraphLatencyModel
from nas_core.latency.by_graph.nn_former import check_unpriced
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.metrics import mape
from tests.latency.by_graph.toy import toy_networks

BARELY = {"dim": 16, "depth": 1, "epochs": 2}


def test_what_operators_cost_need_not_be_learned_by_the_network() -> None:
    train, test = toy_networks(60).out_of_domain("mixed")
    errors = {
        kind: mape(latency_model(kind, "graph")(**BARELY).fit(train).predict(test.graphs), test.latency_ms)
        for kind in ("nn-former", "nn-former-released")
    }
    assert errors["nn-former"] < 10 < 20 < errors["nn-former-released"]


def fitted(kind: str) -> GraphLatencyModel:
    return latency_model(kind, "graph")(**BARELY).fit(toy_networks(30))


def test_the_network_predicts_a_factor_and_the_file_has_the_prices(tmp_path: Path) -> None:
    model, data = fitted("nn-former"), toy_networks(30)
    path = tmp_path / "m.safetensors"
    model.save(path)
    counts = latency_model("counts", "graph")().fit(data)
    factor = NNFormerPredictor.load(path).predict(data.graphs)
    assert np.allclose(factor * counts.predict(data.graphs), model.predict(data.graphs), rtol=1e-6)
    assert np.array_equal(load_latency_model(path, "graph").predict(data.graphs), model.predict(data.graphs))


def test_the_factor_alone_is_no_prediction(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    model = fitted("nn-former")
    model.save(path)
    with pytest.raises(ConfigError, match="not a predictor by itself; use it with 'nas-ext latency predict'"):
        check_unpriced(NNFormerPredictor.load(path), path)
    plain = fitted("nn-former-released")
    plain.save(path)
    assert check_unpriced(NNFormerPredictor.load(path), path).fitted
