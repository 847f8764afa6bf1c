"""Metrics and expected improvement against values computed by hand or by integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from nas_core.predictor import expected_improvement, kendall_tau
from nas_core.predictor.metrics import accuracy_within, mape


def test_kendall_tau() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert kendall_tau([4, 3, 2, 1], [10, 20, 30, 40]) == pytest.approx(-1)
    assert kendall_tau([1, 3, 2, 4], [1, 2, 3, 4]) == pytest.approx((5 - 1) / 6)
    # 5 pairs in order, none against it, one tied on the left only: 5 / sqrt(5 * 6)
    assert kendall_tau([1, 1, 2, 3], [1, 2, 3, 4]) == pytest.approx(5 / 30**0.5)
    assert kendall_tau([1, 1, 1], [1, 2, 3]) == 0


def test_mape_is_relative_to_the_target() -> None:
    assert mape([1, 3], [2, 2]) == pytest.approx(50)
    assert mape([2.2, 4.0, -5.0], [2.0, 5.0, -4.0]) == pytest.approx(100 * (0.1 + 0.2 + 0.25) / 3)


def test_accuracy_within() -> None:
    predicted, target = [109.0, 112.0, 90.0, 95.1, -10.5], [100.0, 100.0, 100.0, 100.0, -10.0]
    assert accuracy_within(predicted, target) == pytest.approx(80)
    assert accuracy_within(predicted, target, 5) == pytest.approx(40)
    assert accuracy_within([1.0, 2.0], [1.0, 2.0], 0) == 100


@pytest.mark.parametrize(("mean", "std", "best"), [(0.9, 0.02, 0.93), (0.95, 0.01, 0.93), (0.93, 0.5, 0.93)])
def test_expected_improvement_is_its_integral(mean: float, std: float, best: float) -> None:
    density = norm(mean, std).pdf
    larger = quad(lambda y: (y - best) * density(y), best, best + 12 * std, epsabs=1e-14)[0]
    smaller = quad(lambda y: (best - y) * density(y), best - 12 * std, best, epsabs=1e-14)[0]
    np.testing.assert_allclose(expected_improvement([mean], [std], best), [larger], rtol=1e-6)
    np.testing.assert_allclose(expected_improvement([mean], [std], best, maximize=False), [smaller], rtol=1e-6)


def test_a_certain_value_improves_by_its_mean() -> None:
    np.testing.assert_allclose(expected_improvement([0.9, 0.95], [0.0, 0.0], 0.92), [0.0, 0.03])
