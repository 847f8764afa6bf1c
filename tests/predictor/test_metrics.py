"""Metrics and expected improvement against values computed by hand or by integration."""

from __future__ import annotations

import pytest

from nas_core.predictor import kendall_tau
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
