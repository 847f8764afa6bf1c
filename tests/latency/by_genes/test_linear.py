"""The default latency model: its features and its regression."""

import numpy as np
import pytest

from nas_core.latency.by_genes.linear import LinearModel, RowFeatures, SummaryFeatures, ridge
from nas_core.predictor.metrics import kendall_tau, mape
from nas_core.space import Architecture, Choice, SearchSpace, get_space


def test_features_by_hand():
    space = SearchSpace(
        "mixed",
        [
            Choice.make("width", [64, 32]),
            Choice.make("layers", [1, 2, 3]),
            Choice.make("ffn", [100, 200, 400], "layers", 3),
            Choice.make("kind", ["soft", "cos", "none"], "layers", 3),
        ],
    )
    features = RowFeatures(space)
    architecture = Architecture({"width": 32, "layers": 2, "ffn": [400, 200], "kind": ["cos", "none"]})
    values = dict(zip(features.names, features(space.rows([architecture]))[0], strict=True))
    assert values == pytest.approx(
        {
            "width": 0.5,
            "layers": 2 / 3,
            "ffn": (1 + 0.5) / 3,
            "kind": (0.5 + 1) / 3,
            "layers=2": 1,
            "ffn=200": 1 / 3,
            "kind=cos": 1 / 3,
            "ffn*kind": (1 * 0.5 + 0.5 * 1) / 3,
        }
    )


def test_summary_gives_the_same_totals_as_rows():
    space = get_space("hat_wmt14_en_de")
    rows = space.sample_rows(np.random.default_rng(0), 200)
    by_row, by_summary = RowFeatures(space), SummaryFeatures(space)
    left = dict(zip(by_row.names, by_row(rows).T, strict=True))
    right = dict(zip(by_summary.names, by_summary(space.encode_rows(rows, "summary")).T, strict=True))
    shared = sorted(set(left) & set(right))
    assert {"decoder.ffn_dim", "decoder.layers=3"} <= set(shared)
    for name in shared:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-5, err_msg=name)


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
    space = get_space("hat_small")
    rows = space.sample_rows(np.random.default_rng(0), 500)
    return space, rows, true_ms(space, rows)


def test_predicts_unseen_architectures_and_their_order(measured):
    space, rows, latency = measured
    model = LinearModel(space).fit(rows[:300], latency[:300])
    predicted = model.predict_rows(rows[300:])
    assert mape(predicted, latency[300:]) < 0.3
    assert kendall_tau(predicted, latency[300:]) > 0.98


def test_disturbed_measurements_do_little_harm_and_widen_the_interval(measured):
    space, rows, latency = measured
    noisy = latency.copy()
    noisy[:300:8] *= 2.0
    clean, model = (LinearModel(space).fit(rows[:300], labels[:300]) for labels in (latency, noisy))
    assert mape(model.predict_rows(rows[300:]), latency[300:]) < 1.5
    assert model.interval[1] > 1.5 > clean.interval[1]


def test_errors_count_in_percent_not_in_milliseconds():
    space = SearchSpace("line", [Choice.make("size", list(range(1, 41)))])
    rows, sizes = np.arange(40, dtype=np.int16)[:, None], np.arange(1, 41)
    latency = sizes**1.5  # no polynomial of degree two fits
    predicted = LinearModel(space).fit(rows, latency).predict_rows(rows)
    in_ms = np.polyval(np.polyfit(sizes, latency, 2), sizes)
    assert mape(predicted, latency) < 0.6 * mape(in_ms, latency)
    assert np.abs(predicted - latency).mean() > np.abs(in_ms - latency).mean()


def test_leave_one_out_is_a_fit_without_the_row():
    rng = np.random.default_rng(3)
    design, weights = rng.normal(size=(20, 4)), rng.uniform(0.5, 2, 20)
    target = design @ rng.normal(size=4) + 5 + rng.normal(size=20) * 0.3
    constant, slopes, held_out = ridge(design, target, weights)
    weighted = np.sqrt(weights)[:, None]
    full = np.concatenate([np.ones((20, 1)), design], axis=1)
    least = np.linalg.lstsq(full * weighted, target * weighted[:, 0], rcond=None)[0]
    assert np.concatenate([[constant], slopes]) == pytest.approx(least, abs=0.2)
    for row in range(20):
        rest = np.arange(20) != row
        repeated = np.linalg.lstsq((full * weighted)[rest], (target * weighted[:, 0])[rest], rcond=None)[0]
        assert held_out[row] == pytest.approx(full[row] @ repeated, abs=0.15)


def test_never_negative_far_outside_the_data(measured):
    space, rows, latency = measured
    shallow = rows[np.argsort(latency)[:30]]
    model = LinearModel(space).fit(shallow, np.linspace(1, 30, 30) ** 2)
    assert model.predict_rows(space.sample_rows(np.random.default_rng(1), 2000)).min() > 0
