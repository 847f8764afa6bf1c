"""The learning rate of the training."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nas_core.compression import training
from nas_core.compression.pipeline import CompressConfig
from tests.compression.test_candidates import SPACE


def test_the_learning_rate_rises_and_decays_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE, training_batches=lambda size, seed: repeat(None))
    model, rates, adam = torch.nn.Linear(1, 1), list[float](), torch.optim.AdamW

    def step(self: torch.optim.AdamW) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(adam, "step", step)
    monkeypatch.setattr(training, "_loss", lambda *_: model(torch.ones(1, 1)).sum())
    assert training.distill(trained, model, model, CompressConfig(updates=100)) == 100
    highest = training.lr_of(trained, CompressConfig())
    assert highest == pytest.approx(0.2 / 64)
    assert len(rates) == 100 and max(rates) > 0.9 * highest and rates[-1] < 0.01 * highest
    assert rates[0] < 0.1 * highest and rates.index(max(rates)) == 10


def test_training_ends_at_a_gradient_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE, training_batches=lambda size, seed: repeat(None))
    model, scales = torch.nn.Linear(1, 1), iter([1.0, float("inf")])
    monkeypatch.setattr(training, "_loss", lambda *_: model(torch.ones(1, 1)).sum() * next(scales))
    assert training.distill(trained, model, model, CompressConfig(updates=100)) == 1
    assert model.weight.isfinite().all()
