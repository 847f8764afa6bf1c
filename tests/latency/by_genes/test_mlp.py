"""HAT's perceptron beyond the contract of all models by genes."""

import numpy as np
import pytest

from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.mlp import HATConfig, MLPConfig, MLPModel
from nas_core.predictor.metrics import mape
from nas_core.space import get_space


@pytest.fixture(scope="module")
def measured():
    space = get_space("hat_small")
    rows = space.sample_rows(np.random.default_rng(0), 400)
    summary = space.encode_rows(rows, "summary").astype(float)
    return space, rows, 5 + 10 * summary[:, 5] * (1 + summary[:, 4] * summary[:, 6])


def test_hats_settings_train_on_plain_milliseconds(measured):
    space, rows, latency = measured
    hat = HATConfig()
    assert (hat.hidden, hat.layers, hat.steps, hat.batch, hat.lr) == (400, 4, 5000, 128, 1e-5)
    config = MLPConfig(hidden=32, layers=2, steps=300, lr=1e-3, logarithmic=False)
    model = MLPModel(space, config=config).fit(rows, latency)
    assert mape(model.predict_rows(rows), latency) < 10


def test_no_prediction_is_far_below_the_measurements(measured, tmp_path):
    """A perceptron on plain milliseconds gave 0.001 ms where it had learned nothing, which met any limit."""
    space, rows, latency = measured
    model = MLPModel(space, config=MLPConfig(hidden=8, layers=1, steps=1, logarithmic=False)).fit(rows, latency)
    model._weights[-1][1][:] = -9.0  # private: no data make it so, reliably
    model.save(tmp_path / "model.json")
    for fitted in (model, load_latency_model(tmp_path / "model.json", "genes", space)):
        np.testing.assert_allclose(fitted.predict_rows(rows), latency.min() / 3)
