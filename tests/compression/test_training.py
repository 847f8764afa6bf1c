"""The learning rate of the training."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nas_core.compression.candidates import Candidate
from nas_core.compression.pipeline import CompressConfig
from nas_core.compression.training import Student, default_lr
from tests.compression.test_candidates import SPACE


def test_the_learning_rate_rises_and_decays_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE)
    model = torch.nn.Linear(1, 1)
    rates = []

    def loss(self: Student, batch: object) -> torch.Tensor:
        rates.append(self.optimizer.param_groups[0]["lr"])
        return model(torch.ones(1, 1)).sum()  # type: ignore[no-any-return]

    monkeypatch.setattr(Student, "_loss", loss)
    candidate = Candidate("all", SPACE.largest(), {}, 1.0)
    Student(trained, candidate, model, model, CompressConfig(updates=100)).train(repeat(None))
    highest = default_lr(trained)
    assert highest == pytest.approx(0.2 / 64)
    assert len(rates) == 100 and max(rates) > 0.9 * highest and rates[-1] < 0.01 * highest
    assert rates[0] < 0.1 * highest and rates.index(max(rates)) == 10
