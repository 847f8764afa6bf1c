"""Benchmarks of predictors with a time limit, as on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.resumable import OutOfTimeError
from benchmarks.predictor import predictor_quality
from benchmarks.predictor.predictor_quality import Split, Task, run
from nas_core.predictor import progress as checkpoint
from tests.predictor.graphs import random_graphs

CHANGES = (("dim", 16), ("depth", 1), ("epochs", 6), ("batch_size", 4))
TASK = Task("nasbench201", 12, 0, "paper", CHANGES, False)


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs((7,) * 12)
    targets = np.linspace(0.1, 0.9, 12)
    monkeypatch.setattr(predictor_quality, "split_of", lambda task: Split(graphs, targets, graphs, targets))
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)


@pytest.mark.usefixtures("synthetic")
def test_an_interrupted_training_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = run(TASK, tmp_path / "whole")
    steps: list[int] = []

    def limited(until: float, what: str) -> Any:
        def progress(step: int, total: int, loss: float) -> None:
            steps.append(step)
            if len(steps) == 8:
                raise OutOfTimeError(what)

        return progress

    monkeypatch.setattr(predictor_quality, "time_limit_callback", limited)
    with pytest.raises(OutOfTimeError, match="nasbench201, 12 cells, paper"):
        run(TASK, tmp_path / "part")
    assert steps == list(range(1, 9)) and list((tmp_path / "part").iterdir())
    repeated = run(TASK, tmp_path / "part")
    assert steps[8:] == list(range(8, 19)) and repeated["tau"] == full["tau"]
    assert repeated["precision"] == full["precision"] and not list((tmp_path / "part").iterdir())
