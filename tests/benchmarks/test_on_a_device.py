"""Benchmarks of predictors as they run on a GPU: stopped and continued."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.resumable import OutOfTimeError, results, stopping
from benchmarks.predictor import predictor_quality
from benchmarks.predictor.predictor_quality import Split, Task, run
from nas_core.predictor import progress as checkpoint
from tests.predictor.graphs import random_graphs

CHANGES = (("dim", 16), ("depth", 1), ("epochs", 6), ("batch_size", 4))
TASK = Task("nasbench201", 12, 0, "paper", CHANGES, False)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_graphs((7,) * 12)
    targets = np.linspace(0.1, 0.9, 12)
    monkeypatch.setattr(predictor_quality, "split_of", lambda task: Split(graphs, targets, graphs, targets))
    monkeypatch.setattr(checkpoint, "EVERY_S", 0.0)


@pytest.mark.usefixtures("made_up")
def test_a_training_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(TASK, tmp_path / "whole")
    steps: list[int] = []

    def limited(until: float, what: str) -> Any:
        def progress(step: int, total: int, loss: float) -> None:
            steps.append(step)
            if len(steps) == 8:
                raise OutOfTimeError(what)

        return progress

    monkeypatch.setattr(predictor_quality, "stopping", limited)
    with pytest.raises(OutOfTimeError, match="nasbench201, 12 cells, paper"):
        run(TASK, tmp_path / "part")
    assert steps == list(range(1, 9)) and list((tmp_path / "part").iterdir())
    again = run(TASK, tmp_path / "part")
    assert steps[8:] == list(range(8, 19)) and again["tau"] == whole["tau"]
    assert again["precision"] == whole["precision"] and not list((tmp_path / "part").iterdir())


def test_the_end_of_a_call() -> None:
    progress = stopping(time.monotonic() + 100, "a fit")
    progress(1, 2, 0.5)
    with pytest.raises(OutOfTimeError, match="a fit: not begun"):
        stopping(time.monotonic() - 1, "a fit")


@pytest.mark.usefixtures("made_up")
def test_each_result_is_kept_at_once(tmp_path: Path) -> None:
    tasks = [Task("nasbench201", 12, draw, "paper", CHANGES, False) for draw in range(3)]
    seen: list[int] = []

    def stopped(task: Task) -> dict[str, Any]:
        if task.draw == 2:
            raise OutOfTimeError("over")
        return run(task, tmp_path / "fits")

    with pytest.raises(OutOfTimeError):
        results(tasks, stopped, tmp_path / "w.jsonl", 0, lambda records: seen.append(len(records)))
    assert seen == [1, 2]
    assert len(results(tasks, lambda task: run(task, tmp_path / "fits"), tmp_path / "w.jsonl", 0)) == 3


def test_devices_have_results_of_their_own() -> None:
    assert "device" not in TASK.key and Task("nasbench201", 12, 0, "gcn", (), False, None, "meta").key["device"]
