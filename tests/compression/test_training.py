"""Learning rates of the trainings of candidates."""

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


def test_the_learning_rate_decays_in_each_training(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE)
    model = torch.nn.Linear(1, 1)
    rates = []

    def loss(self: Student, batch: object) -> torch.Tensor:
        rates.append(self.optimizer.param_groups[0]["lr"])
        return model(torch.ones(1, 1)).sum()  # type: ignore[no-any-return]

    monkeypatch.setattr(Student, "_loss", loss)
    student = Student(trained, Candidate("all", SPACE.largest(), {}, 1.0), model, model, 100, CompressConfig())
    for end in (8, 100):
        student.train(repeat(None), end)
    highest = default_lr(trained)
    assert highest == pytest.approx(0.2 / 64)
    short, long = rates[:8], rates[8:]
    assert len(long) == 92 and max(long) > 0.9 * highest and long[-1] < 0.01 * highest
    assert max(short) < 0.4 * highest and short[-1] < short[3]
