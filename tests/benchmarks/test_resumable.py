"""Stored results of benchmarks: computed, reused and merged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.resumable import measure_rows, merge_rows, results
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.writing import write_json


@dataclass(frozen=True)
class Task:
    key: dict[str, Any]


def run(task: Task) -> dict[str, Any]:
    return {**task.key, "tau": 0.5}


def test_results_with_other_settings_are_recomputed(tmp_path: Path) -> None:
    work = tmp_path / "w.jsonl"
    for record in ({"draw": 0}, {"draw": 1, "settings": "a"}, {"draw": 2, "settings": "b"}):
        append_jsonl(work, {**record, "tau": 0.1})
    tasks = [Task({"draw": draw, "settings": "a"}) for draw in range(4)]
    result = results(tasks, run, work, 1)
    assert result == read_jsonl(work)
    assert [r for r in result if r["tau"] == 0.5] == [run(tasks[2]), run(tasks[3])]
    assert results(tasks, run, work, 1) == result


def test_merge_keeps_other_rows(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    new = [{"size": 100, "method": "best", "tau": 2}]
    assert merge_rows(path, new, ("size", "method")) == new
    old = [{"size": 424, "method": "best", "tau": 1}, {"size": 100, "method": "best", "tau": 1},
           {"size": 100, "method": "gcn", "tau": 1}]  # fmt: skip
    write_json(path, {"rows": old})
    assert merge_rows(path, new, ("size", "method")) == [new[0], old[2], old[0]]


def test_an_interrupted_measurement_resumes(tmp_path: Path) -> None:
    out, keys, indices = tmp_path / "r.json", [{"size": size} for size in (1, 2, 3)], []

    def measure(index: int) -> dict[str, float]:
        indices.append(index)
        if indices == [0, 1]:
            raise KeyboardInterrupt
        return {"ms": float(len(indices))}

    with pytest.raises(KeyboardInterrupt):
        measure_rows(out, keys, {"repeats": 1}, measure)
    assert len(read_jsonl(tmp_path / "r.part.jsonl")) == 1
    rows = measure_rows(out, keys, {"repeats": 1}, measure)
    assert rows == [{"size": 1, "ms": 1.0}, {"size": 2, "ms": 3.0}, {"size": 3, "ms": 4.0}]
    assert not (tmp_path / "r.part.jsonl").exists()
    append_jsonl(tmp_path / "r.part.jsonl", {"size": 1, "settings": "other", "ms": 0.0})
    assert [row["ms"] for row in measure_rows(out, keys, {"repeats": 1}, measure)] == [5.0, 6.0, 7.0]
