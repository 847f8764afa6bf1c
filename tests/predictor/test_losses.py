"""Losses against values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from nas_core.predictor.losses import log_loss, ranking_loss, relative_loss

TARGET = torch.tensor([1.0, 2.0, 4.0])


def test_ranking_loss_compares_differences() -> None:
    predicted, order = torch.tensor([1.5, 2.0, 3.0]), torch.tensor([1, 2, 0])
    # differences of predictions -0.5, -1, 1.5; of targets -1, -2, 3
    assert ranking_loss(predicted, TARGET, order).item() == pytest.approx((0.5 + 1.0 + 1.5) / 3)
    assert ranking_loss(TARGET + 7, TARGET, order).item() == 0
    assert ranking_loss(predicted, TARGET, torch.arange(3)).item() == 0


def test_relative_loss() -> None:
    predicted = torch.tensor([1.1, 1.0, 4.0])
    assert relative_loss(predicted, TARGET).item() == pytest.approx((0.1**2 + 0.5**2) / 3, rel=1e-5)
    assert relative_loss(10 * predicted, 10 * TARGET).item() == pytest.approx(relative_loss(predicted, TARGET).item())


def test_log_loss_takes_half_and_double_alike() -> None:
    half, double = (log_loss(factor * TARGET, TARGET).item() for factor in (0.5, 2.0))
    assert half == pytest.approx(double) == pytest.approx(math.log(2) ** 2)
