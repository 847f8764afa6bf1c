"""Fits on a part of the measurements, their quality on the rest, and on other measurements."""

import math

import numpy as np
import pytest

from nas_core.latency.by_genes.dataset import LatencyData
from nas_core.latency.by_genes.fit import Quality, evaluate, fit, quality, quality_warnings, random_split
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.space import get_space


def made(count, seed=0):
    space, rng = get_space("hat_small"), np.random.default_rng(seed)
    rows = space.sample_rows(rng, count)
    latency = (5 + 2.0 * (rows >= 0).sum(1)) * np.exp(rng.normal(size=count) * 0.01)
    return LatencyData(space, "rows", rows, latency)


def linear():
    return LinearModel(get_space("hat_small"))


def test_held_out_rows_are_not_learned():
    data = made(80)
    spoilt = data.latency_ms.copy()
    spoilt[random_split(80, 0.2, 0)[1]] *= 3
    held_out = fit(LatencyData(data.space, "rows", data.inputs, spoilt), linear)[1]
    assert held_out.mape_percent == pytest.approx(200 / 3, abs=2)
    assert held_out.coverage_percent == 0


def test_quality_is_kept_with_the_model_and_compared_with_other_measurements():
    model, held_out = fit(made(80), linear)
    assert model.info["measurements"] == 80
    assert model.info["metrics"]["mape_percent"] == held_out.mape_percent < 2
    assert held_out.options_percent == 100
    assert evaluate(model, made(50, seed=1)).mape_percent < 2


def test_quality_by_hand():
    predicted, measured = np.array([11.0, 18.0, 30.0]), np.array([10.0, 20.0, 30.0])
    by_hand = quality(predicted, measured, (0.9, 1.1))
    assert by_hand.mape_percent == pytest.approx((10 + 10 + 0) / 3) and by_hand.r2 == pytest.approx(1 - 5 / 200)
    assert by_hand.kendall_tau == 1
    assert quality(np.array([3.0, 1.0, 2.0]), measured, (0.9, 1.1)).kendall_tau == pytest.approx(-1 / 3)
    predicted, measured = np.full(4, 10.0), np.array([8.0, 9.5, 10.5, 13.0])
    assert quality(predicted, measured, (0.9, 1.1)).coverage_percent == 50
    assert quality(predicted, measured, (0.9, 1.4)).coverage_percent == 75
    constant = quality(np.full(3, 2.0), np.full(3, 2.0), (0.9, 1.1))
    assert math.isnan(constant.r2) and math.isnan(constant.kendall_tau)
    assert constant.to_dict()["r2"] is None and constant.to_dict()["mape_percent"] == 0


@pytest.mark.parametrize(
    ("count", "coverage", "options", "expected"),
    [
        (6, 100 * 2 / 6, 100.0, ["coverage is 33 %: 2 of 6 measurements", "only 6 measurements"]),
        (24, 100 * 18 / 24, 100.0, ["coverage is 75 %: 18 of 24"]),
        (24, 100 * 20 / 24, 100.0, []),  # likely by chance
        (24, 95.8, 97.0, ["3.0 % of the space's options occur in no training measurement"]),
        (24, 95.8, math.nan, []),
    ],
)
def test_warnings_about_poor_models(count, coverage, options, expected):
    quality = Quality(count, 5.0, 0.9, 0.8, coverage, options)
    fitted, other = (quality_warnings(quality, fitted) for fitted in (True, False))
    assert len(fitted) == len(other) == len(expected)
    assert all(part in warning and "--samples" in warning for part, warning in zip(expected, fitted, strict=True))
    assert not any("--samples" in warning for warning in other), "other measurements are not those of the fit"
