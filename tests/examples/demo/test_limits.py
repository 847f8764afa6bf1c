"""Limits and latency models of the demo where measurements are noise."""

import numpy as np
import pytest

from examples.demo import limits, pipeline, settings
from nas_core.space import get_space

SPACE = get_space("hat_small")


class Model:
    """A latency model that predicts from the share of the largest size, as ``curve`` says."""

    def __init__(self, curve):
        self.space, self.curve = SPACE, curve

    def predict_rows(self, rows):
        return self.curve(np.random.default_rng(1).uniform(0.2, 0.8, len(rows)))

    def predict(self, architectures):
        return [self.curve(np.array([share]))[0] for share in (0.0, 1.0)]


def under(model, limit):
    return float((model.predict_rows(np.zeros((2000, 3))) <= limit).mean())


def test_limits_are_evenly_spread():
    assert limits.spread_limits(Model(lambda share: 10 + 20 * share), 3) == [15, 20, 25]


def test_every_limit_leaves_room_where_the_smallest_was_measured_too_fast():
    model = Model(lambda share: np.where(share == 0, 1.0, 30 + 20 * share))  # evenly: 13.2, 25.5, 37.8
    found = limits.spread_limits(model, 3)
    assert found == sorted(set(found)) and len(found) == 3
    assert [under(model, limit) for limit in found] == pytest.approx([0.03, 0.06, 0.33], abs=0.03)


def test_limits_exist_where_the_smallest_seems_slower_than_the_largest():
    model = Model(lambda share: 30 - 20 * share)
    found = limits.spread_limits(model, 3)
    assert [under(model, limit) for limit in found] == pytest.approx([0.25, 0.5, 0.75], abs=0.02)


def test_equal_limits_are_one():
    assert limits.spread_limits(Model(lambda share: 10 + 0 * share), 3) == [10]


@pytest.mark.parametrize(
    ("mape", "tau", "poor"), [(3.0, 0.9, False), (3.0, 0.2, True), (30.0, 0.9, True), (3.0, None, True)]
)
def test_poor_models(mape, tau, poor):
    assert limits.is_poor({"mape_percent": mape, "kendall_tau": tau}) is poor


@pytest.mark.parametrize(("taus", "measured"), [([0.9], [20]), ([0.1, 0.8], [20, 40]), ([0.1] * 9, [20, 40, 60])])
def test_more_is_measured_until_the_model_is_good(monkeypatch, tmp_path, capsys, taus, measured):
    made = pipeline.Pipeline(settings.parse(["--out", str(tmp_path), "--samples", "20"]))
    made.about = {"source": "en", "source_length": 9, "target_length": 9}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dict.en.txt").write_text("der 9\n")
    calls, fits = [], iter(taus)

    def command(argv, watch=None, poll=None, until=None):
        words = [str(word) for word in argv]
        calls.append(words)
        (tmp_path / ("latency.json" if "fit" in words else "latency.jsonl")).write_text(str(len(calls)))
        if "fit" in words:
            quality["kendall_tau"] = next(fits)

    quality = {"mape_percent": 4.0, "kendall_tau": None}
    made.run.command = command
    monkeypatch.setattr(pipeline, "load_latency_model", lambda *_: type("Model", (), {"info": {"metrics": quality}}))
    made.latency()
    collected = [call for call in calls if "collect" in call]
    assert [int(call[call.index("--samples") + 1]) for call in collected] == measured
    clock = collected[0][collected[0].index("--clock") + 1]
    assert clock == ("cpu" if made.device == "cpu" else "wall")
    assert ("too noisy" in capsys.readouterr().out) == (len(taus) == 9)
