import math

import numpy as np
import pytest

from nas_core.latency.by_genes.metrics import (
    LEGEND,
    Quality,
    doubts,
    option_coverage_percent,
    quality,
    r2,
    table,
)
from nas_core.space import get_space


def test_by_hand():
    predicted, measured = np.array([11.0, 18.0, 30.0]), np.array([10.0, 20.0, 30.0])
    assert quality(predicted, measured, (0.9, 1.1)).mape_percent == pytest.approx((10 + 10 + 0) / 3)
    assert r2(predicted, measured) == pytest.approx(1 - 5 / 200)
    assert quality(predicted, measured, (0.9, 1.1)).kendall_tau == 1
    assert quality(np.array([3.0, 1.0, 2.0]), measured, (0.9, 1.1)).kendall_tau == pytest.approx(-1 / 3)


def test_interval_bounds_measured_over_predicted():
    predicted, measured = np.full(4, 10.0), np.array([8.0, 9.5, 10.5, 13.0])
    assert quality(predicted, measured, (0.9, 1.1)).coverage_percent == 50
    assert quality(predicted, measured, (0.9, 1.4)).coverage_percent == 75


def test_option_coverage_counts_options_not_rows():
    space = get_space("hat_small")
    rows = space.rows([space.smallest(), space.largest()])
    once = option_coverage_percent(space, rows)
    assert option_coverage_percent(space, np.repeat(rows, 5, axis=0)) == once < 100
    assert option_coverage_percent(space, space.sample_rows(np.random.default_rng(0), 500)) == 100
    smallest = rows[:1]  # one option in each slot that exists
    assert option_coverage_percent(space, smallest) == pytest.approx(
        100 * (smallest >= 0).sum() / sum(len(row) for choice in space.choices for row in choice.options)
    )


def test_what_does_not_exist_is_nan_and_none_in_json():
    constant = quality(np.full(3, 2.0), np.full(3, 2.0), (0.9, 1.1))
    assert math.isnan(constant.r2) and math.isnan(constant.kendall_tau)
    assert constant.to_dict()["r2"] is None and constant.to_dict()["mape_percent"] == 0
    assert "-" in table({"x": constant}).splitlines()[1]


@pytest.mark.parametrize(
    ("count", "coverage", "options", "said"),
    [
        (6, 100 * 2 / 6, 100.0, ["coverage is 33 %, 2 of 6 measurements", "only 6 measurements"]),
        (24, 100 * 18 / 24, 100.0, ["coverage is 75 %, 18 of 24"]),
        (24, 100 * 20 / 24, 100.0, []),  # as chance has it often
        (6, 100 * 5 / 6, 100.0, ["only 6 measurements"]),
        (24, 95.8, 97.0, ["3.0 % of the space's options occur in no measurement"]),
        (24, 95.8, math.nan, []),
    ],
)
def test_poor_models_are_doubted(count, coverage, options, said):
    found = doubts(Quality(count, 5.0, 0.9, 0.8, coverage, options))
    assert len(found) == len(said)
    assert all(part in doubt and "--samples" in doubt for part, doubt in zip(said, found, strict=True))


def test_doubts_about_other_measurements_do_not_speak_of_those_of_the_fit():
    found = doubts(Quality(5, 5.0, 0.9, 0.8, 20.0, 99.7), fitted=False)
    assert len(found) == 3 and not any("--samples" in doubt or "120" in doubt for doubt in found)
    assert "0.3 % of the space's options" in found[-1]


def test_the_legend_names_every_column():
    header = table({"x": Quality(6, 5.0, 0.9, 0.8, 33.3)}).splitlines()[0]
    for column in header.replace(" %", "").split():
        assert column in LEGEND
