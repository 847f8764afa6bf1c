"""Results of benchmarks: which are computed, which are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.resumable import merged, results, settings_hash
from benchmarks.predictor import predictor_quality
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.writing import write_json


@dataclass(frozen=True)
class Task:
    key: dict[str, Any]


def run(task: Task) -> dict[str, Any]:
    return {**task.key, "tau": 0.5}


def test_results_of_other_settings_are_computed_anew(tmp_path: Path) -> None:
    work = tmp_path / "w.jsonl"
    for record in ({"draw": 0}, {"draw": 1, "settings": "a"}, {"draw": 2, "settings": "b"}):
        append_jsonl(work, {**record, "tau": 0.1})
    tasks = [Task({"draw": draw, "settings": "a"}) for draw in range(4)]
    found = results(tasks, run, work, 1)
    assert found == read_jsonl(work)
    assert [r for r in found if r["tau"] == 0.5] == [run(tasks[2]), run(tasks[3])]
    assert results(tasks, run, work, 1) == found


def test_rows_of_a_result_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    new = [{"size": 100, "method": "best", "tau": 2}]
    assert merged(path, new, ("size", "method")) == new
    old = [{"size": 424, "method": "best", "tau": 1}, {"size": 100, "method": "best", "tau": 1},
           {"size": 100, "method": "gcn", "tau": 1}]  # fmt: skip
    write_json(path, {"rows": old})
    assert merged(path, new, ("size", "method")) == [new[0], old[2], old[0]]


def test_settings_are_told_apart() -> None:
    chosen: list[tuple[int, str, Any]] = [
        (156, "best", ()), (1563, "best", ()), (156, "paper", ()), (156, "paper", (("dim", 64),)),
        (156, "true siblings", ()),
    ]  # fmt: skip
    tasks = [predictor_quality.Task("nasbench201", size, 0, method, changes, False) for size, method, changes in chosen]
    keys = [task.key["settings"] for task in tasks]
    assert len(set(keys)) == 5 and all(len(key) == 8 for key in keys)
    assert "settings" not in predictor_quality.Task("nasbench201", 156, 0, "gcn", (), False).key
    assert settings_hash({"a": 1, "b": 2.0}) == settings_hash({"b": 2.0, "a": 1}) != settings_hash({"a": 1, "b": 2.5})


def test_summaries_leave_other_settings_out() -> None:
    key = predictor_quality.Task("nasbench201", 156, 0, "best", (), False).key
    records = [
        {**key, "tau": 0.8, "fit_cpu_s": 1},
        {**key, "draw": 1, "settings": "foreign", "tau": 0.1, "fit_cpu_s": 1},
        {**{k: v for k, v in key.items() if k != "settings"}, "draw": 2, "tau": 0.6, "fit_cpu_s": 1},
    ]
    (row,) = predictor_quality.summary(records)
    assert row["taus"] == [0.8, 0.6]


@pytest.mark.parametrize("given", ["dmi=3", "dim", "lr=fast", "targets=log", "lr=-1"])
def test_wrong_settings_are_one_line(given: str, tmp_path: Path) -> None:
    arguments = ["--methods", "paper", "--set", given, "--work", str(tmp_path / "w"), "--out", str(tmp_path / "o")]
    with pytest.raises(SystemExit, match="predictor_quality: error: ") as caught:
        predictor_quality.main(arguments)
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())
