import json
import time

import numpy as np
import pytest

from nas_core.errors import ArchitectureError, DataError, SpaceError
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes import LinearModel
from nas_core.latency.by_genes.ridge import ridge
from nas_core.predictor.metrics import kendall_tau, mape
from nas_core.space import Choice, SearchSpace, get_space


def true_ms(space, rows):
    """A machine on which each decoder layer costs by its own width, and the rest is constant."""
    times = []
    for a in space.architectures(rows):
        width = a["decoder.embed_dim"] / 100
        cross = sum({-1: 1, 1: 2, 2: 3}[v] for v in a["decoder.arbitrary_cross"])
        layers = sum(0.3 + width * ffn / 500 for ffn in a["decoder.ffn_dim"])
        times.append(2 + layers + 0.1 * cross + 0.2 * sum(h == 4 for h in a["decoder.self_heads"]))
    return np.array(times)


@pytest.fixture(scope="module")
def measured():
    space, rng = get_space("hat_small"), np.random.default_rng(0)
    rows = space.sample_rows(rng, 500)
    return space, rows, true_ms(space, rows), rng


def test_predicts_unseen_architectures_and_their_order(measured):
    space, rows, latency, _ = measured
    model = LinearModel(space).fit(rows[:300], latency[:300])
    predicted = model.predict_rows(rows[300:])
    assert mape(predicted, latency[300:]) < 0.3
    assert kendall_tau(predicted, latency[300:]) > 0.98
    assert model.predict(space.architectures(rows[300:])) == pytest.approx(predicted)
    assert model.predict(space.largest()).shape == (1,)


def test_disturbed_measurements_do_little_harm_and_widen_the_interval(measured):
    space, rows, latency, _ = measured
    noisy = latency.copy()
    noisy[:300:8] *= 2.0
    clean, model = (LinearModel(space).fit(rows[:300], labels[:300]) for labels in (latency, noisy))
    assert mape(model.predict_rows(rows[300:]), latency[300:]) < 1.5
    assert model.interval[1] > 1.5 > clean.interval[1]


def test_errors_count_in_percent_not_in_milliseconds():
    space = SearchSpace("line", [Choice.make("size", list(range(1, 41)))])
    rows = np.arange(40, dtype=np.int16)[:, None]
    latency = np.arange(1, 41) ** 1.5  # no polynomial of degree two: something has to be missed
    predicted = LinearModel(space).fit(rows, latency).predict_rows(rows)
    sizes = np.arange(1, 41)
    in_ms = np.polyval(np.polyfit(sizes, latency, 2), sizes)
    assert mape(predicted, latency) < 0.6 * mape(in_ms, latency)
    assert np.abs(predicted - latency).mean() > np.abs(in_ms - latency).mean()


def test_leave_one_out_is_what_refitting_gives():
    rng = np.random.default_rng(3)
    design, weights = rng.normal(size=(20, 4)), rng.uniform(0.5, 2, 20)
    target = design @ rng.normal(size=4) + 5 + rng.normal(size=20) * 0.3
    constant, slopes, left_out, _ = ridge(design, target, weights)
    weighted = np.sqrt(weights)[:, None]
    full = np.concatenate([np.ones((20, 1)), design], axis=1)
    least = np.linalg.lstsq(full * weighted, target * weighted[:, 0], rcond=None)[0]
    assert np.concatenate([[constant], slopes]) == pytest.approx(least, abs=0.2)
    for row in range(20):
        rest = np.arange(20) != row
        again = np.linalg.lstsq((full * weighted)[rest], (target * weighted[:, 0])[rest], rcond=None)[0]
        assert left_out[row] == pytest.approx(full[row] @ again, abs=0.15)


def test_ridge_is_strong_when_there_is_nothing_to_learn():
    rng = np.random.default_rng(0)
    _, slopes, _, strength = ridge(rng.normal(size=(30, 40)), rng.normal(size=30), np.ones(30))
    assert strength > 1 and np.abs(slopes).max() < 0.3


def test_never_negative_far_outside_the_data(measured):
    space, rows, latency, rng = measured
    shallow = rows[np.argsort(latency)[:30]]
    model = LinearModel(space).fit(shallow, np.linspace(1, 30, 30) ** 2)
    assert model.predict_rows(space.sample_rows(rng, 2000)).min() > 0


def test_fast_enough_for_a_search(measured):
    space, rows, latency, _ = measured
    model = LinearModel(space).fit(rows, latency)
    many = space.sample_rows(np.random.default_rng(1), 100_000)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        model.predict_rows(many)
        seconds.append(time.perf_counter() - start)
    assert len(many) / min(seconds) > 500_000


@pytest.mark.parametrize("name", ["model.json", "model.npz"])
def test_file_gives_the_same_model(measured, tmp_path, name):
    space, rows, latency, _ = measured
    model = LinearModel(space).fit(rows, latency)
    model.info = {"machine": {"cpu": "abacus"}}
    model.save(tmp_path / name)
    again = LinearModel.load(tmp_path / name, space)
    np.testing.assert_array_equal(again.predict_rows(rows), model.predict_rows(rows))
    assert (again.interval, again.info, again.space) == (model.interval, model.info, space)


def test_other_space_and_damaged_files(measured, tmp_path):
    space, rows, latency, _ = measured
    path = tmp_path / "model.json"
    LinearModel(space).fit(rows, latency).save(path)
    with pytest.raises(SpaceError, match=r"predicts for space 'hat_small', which differs from 'hat_wmt14_en_de'"):
        load_latency_model(path, "genes", get_space("hat_wmt14_en_de"))
    with pytest.raises(ArchitectureError):
        load_latency_model(path).predict(get_space("hat_wmt14_en_de").largest())
    text = path.read_text()
    for old, new, message in [
        ('"nas-ext/latency-model"', '"something else"', "no latency model"),
        ('"version": 1', '"version": 99', "upgrade"),
        ('"paired"', '"impaired"', "damaged"),
        ('"linear": [', '"linear": [1.0,', "damaged"),
    ]:
        path.write_text(text.replace(old, new))
        with pytest.raises(DataError, match=message):
            load_latency_model(path)
    content = json.loads(text)
    for settings in (None, [], "hat", {"workload": "translation"}, {"timing": [2]}):
        path.write_text(json.dumps({**content, "info": {"settings": settings}}))
        with pytest.raises(DataError, match="damaged"):
            load_latency_model(path)
    for value in ("fast", 0, -1, True, float("nan")):
        path.write_text(json.dumps({**content, "info": {"reference_ms": value}}))
        with pytest.raises(DataError, match=r"damaged .*reference_ms"):
            load_latency_model(path)
    path.write_text(json.dumps({name: value for name, value in content.items() if name != "kind"}))
    for load in (load_latency_model, LinearModel.load):
        with pytest.raises(DataError, match=r"no kind|latency model None"):
            load(path)
    path.write_text("[]")
    with pytest.raises(DataError, match="no latency model"):
        load_latency_model(path)
    (tmp_path / "model.npz").write_bytes(b"PK nonsense")
    with pytest.raises(DataError, match="damaged"):
        load_latency_model(tmp_path / "model.npz")


def test_wrong_measurements(measured):
    space, rows, latency, _ = measured
    with pytest.raises(DataError, match="got 4 measurements, expected at least 10"):
        LinearModel(space).fit(rows[:4], latency[:4])
    for value in (np.nan, -1.0, np.inf):
        spoilt = latency.copy()
        spoilt[6] = value
        with pytest.raises(DataError, match="measurement 7"):
            LinearModel(space).fit(rows, spoilt)
    with pytest.raises(DataError, match="shape"):
        LinearModel(space).fit(rows[:, 1:], latency)
