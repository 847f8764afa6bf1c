"""Benchmarks of predictors as they run on a GPU: stopped and continued, with rows for the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.parts.resumable import OutOfTimeError
from benchmarks.predictor import predictor_quality, predictor_speed
from benchmarks.predictor.predictor_quality import Split, Task, run
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
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


def test_parts_of_a_stopped_measurement_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def forward(model: object, pool: object, batch: int, repeats: int, name: str) -> dict[str, Any]:
        if len(measured) == 1 and name not in measured:
            measured.append("stopped")
            raise KeyboardInterrupt
        measured.append(name)
        middle = {"median": 1.0}
        return {"graphs_per_s": {"ours": middle, "plain": middle}, "times_plain": {"ours": middle}}

    monkeypatch.setattr(predictor_speed, "forward", forward)
    kept, parts = tmp_path / "kept.json", ["accuracy_forward"]
    before = {name: {"left_out": "before"} for name in OTHERS}
    with pytest.raises(KeyboardInterrupt):
        predictor_speed.measure(1, True, parts, before, "cpu", kept)
    first = "accuracy_forward, 128 graphs"
    assert measured == [first, "stopped"] and list(read_json(kept)["measured"]) == [first]
    monkeypatch.setattr(predictor_speed, "judged", lambda result, *aim: {})
    found = predictor_speed.measure(1, True, parts, before, "cpu", kept)
    assert measured[2:] == ["accuracy_forward, 4096 graphs"] and not kept.exists()
    rows = predictor_speed.flat(found)
    assert [(row["part"], row["contestant"], row["times_plain"]) for row in rows[:2]] == [
        (first, "ours", 1.0), (first, "plain", None)
    ]  # fmt: skip
    write_json(tmp_path / "rows.json", {"rows": rows})


OTHERS = (
    "largest_difference_from_plain", "accuracy_training, 128 graphs", "accuracy_training, 4096 graphs",
    "latency_forward, 16 graphs", "latency_training, 16 graphs", "bf16", "sparse", "nasbench101",
)  # fmt: skip
