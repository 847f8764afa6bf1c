import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes import HATConfig, MLPConfig, MLPModel
from nas_core.predictor.metrics import mape
from nas_core.space import get_space

SMALL = MLPConfig(hidden=32, layers=2, steps=400, lr=5e-3)


@pytest.fixture(scope="module")
def measured():
    space = get_space("hat_small")
    rows = space.sample_rows(np.random.default_rng(0), 400)
    summary = space.encode_rows(rows, "summary").astype(float)
    return space, rows, 5 + 10 * summary[:, 5] * (1 + summary[:, 4] * summary[:, 6])


def test_learns_and_survives_a_file(measured, tmp_path):
    space, rows, latency = measured
    model = MLPModel(space, config=SMALL).fit(rows[:300], latency[:300])
    predicted = model.predict_rows(rows[300:])
    assert mape(predicted, latency[300:]) < 4
    assert model.interval[0] < 1 < model.interval[1]
    for name in ("model.npz", "model.json"):
        model.save(tmp_path / name)
        again = load_latency_model(tmp_path / name, "genes", space)
        np.testing.assert_allclose(again.predict_rows(rows[300:]), predicted, rtol=1e-6)


def test_summary_input_is_the_same_model(measured):
    space, rows, latency = measured
    by_row = MLPModel(space, "rows", SMALL).fit(rows, latency)
    by_summary = MLPModel(space, "summary", SMALL).fit(space.encode_rows(rows, "summary"), latency)
    np.testing.assert_allclose(by_summary.predict_rows(rows), by_row.predict_rows(rows), rtol=1e-5)


def test_hat_s_settings_train_on_plain_milliseconds(measured):
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
    for one in (model, load_latency_model(tmp_path / "model.json", "genes", space)):
        np.testing.assert_allclose(one.predict_rows(rows), latency.min() / 3)


def test_same_seed_same_model_and_global_generator_untouched(measured):
    space, rows, latency = measured
    config = MLPConfig(hidden=8, layers=1, steps=20)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    first, second = (MLPModel(space, config=config).fit(rows, latency).predict_rows(rows) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.rand(1), expected)


def test_wrong_size():
    with pytest.raises(ConfigError, match="layers is 0"):
        MLPConfig(layers=0)


@pytest.mark.parametrize(("name", "value"), [("seed", -1), ("lr", float("inf")), ("steps", 2.5), ("batch", "8")])
def test_settings_that_cannot_be_are_refused_before_the_training(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value!r}; expected a"):
        MLPConfig(**{name: value})
