"""The engine: files, shared cache, failures, rejected inputs; killed runs are in test_resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas_core.errors import NasExtError
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, quality, size
from tests.search.runs import LIMITS, journal, run


def test_the_folder_holds_the_whole_search(tmp_path: Path) -> None:
    calls: list[Architecture] = []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        calls.append(architecture)
        return {"loss": quality(architecture), "accuracy": 0.5}

    result = run(tmp_path / "run", evaluate, finalists=6, settings={"checkpoint": "abc"}, notes={"host": "x"})
    assert len(set(calls)) == len(calls) == result.evaluations

    records = journal(tmp_path / "run")
    assert [record["index"] for record in records] == list(range(len(calls)))
    assert [record["key"] for record in records] == [architecture.key for architecture in calls]
    assert records[5]["metrics"] == {
        "accuracy": 0.5,
        "latency_ms": size(SPACE, SPACE.rows([calls[5]]))[0],
        "loss": quality(calls[5]),
    }

    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["settings"]["checkpoint"] == "abc"
    assert config["settings"]["searches"]["latency_ms<=3000"]["population"] == 20
    assert config["notes"]["host"] == "x"

    state = json.loads((tmp_path / "run" / "state.json").read_text())
    assert state["evaluations"] == len(calls)
    assert all(one["finished"] for one in state["searches"].values())

    finalists = json.loads((tmp_path / "run" / "finalists.json").read_text())["finalists"]
    assert 2 <= len(finalists) <= 6
    for finalist in finalists:
        architecture = Architecture.load(tmp_path / "run" / finalist["file"])
        assert architecture.key == finalist["key"]
        assert finalist["metrics"]["loss"] == quality(architecture)
    assert (tmp_path / "run" / "pareto.csv").read_text().startswith("key,loss,latency_ms,accuracy,decoder.")


def test_best_is_the_best_of_everything_within_the_limit(tmp_path: Path) -> None:
    result = run(tmp_path)
    for value in LIMITS:
        within = [r["metrics"]["loss"] for r in journal(tmp_path) if r["metrics"]["latency_ms"] <= value]
        assert result.best_by_search[f"latency_ms<={value:g}"].metrics["loss"] == min(within)


def test_a_finished_run_is_read_and_not_repeated(tmp_path: Path) -> None:
    first = run(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    def never(architecture: Architecture) -> dict[str, float]:
        raise AssertionError("evaluated again")

    repeated = run(tmp_path, never)
    assert repeated.replayed == first.evaluations == repeated.evaluations
    assert repeated.best_by_search == first.best_by_search
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_single_failures_are_recorded_and_survived(tmp_path: Path) -> None:
    def evaluate(architecture: Architecture) -> dict[str, Any]:
        digit = int(architecture.key, 16) % 5
        if digit == 0:
            raise RuntimeError("out of memory")
        return {"loss": float("nan") if digit == 1 else quality(architecture)}

    result = run(tmp_path, evaluate)
    records = journal(tmp_path)
    failed = [record for record in records if "error" in record]
    assert {record["error"] for record in failed} == {"RuntimeError: out of memory", "loss is nan"}
    assert len(failed) > 5
    assert result.evaluations == len(records)
    assert {entry.architecture.key for entry in result.archive}.isdisjoint(record["key"] for record in failed)
    before = (tmp_path / "journal.jsonl").read_bytes()
    assert run(tmp_path, evaluate).best_by_search == result.best_by_search
    assert (tmp_path / "journal.jsonl").read_bytes() == before


def test_failures_without_end_stop_the_search_and_are_not_kept(tmp_path: Path) -> None:
    """A cause outside the architectures (a full device, a lost disk) must not spoil the journal."""
    count = 0

    def breaks_down(architecture: Architecture) -> dict[str, float]:
        nonlocal count
        count += 1
        if count > 25:
            raise RuntimeError("device lost")
        return {"loss": quality(architecture)}

    with pytest.raises(NasExtError, match=r"device lost.* 25 earlier results are kept"):
        run(tmp_path / "broken", breaks_down)
    assert len(journal(tmp_path / "broken")) == 25
    repaired, full = run(tmp_path / "broken"), run(tmp_path / "whole")
    assert repaired.replayed == 25
    assert (tmp_path / "broken" / "journal.jsonl").read_bytes() == (tmp_path / "whole" / "journal.jsonl").read_bytes()
    assert repaired.best_by_search == full.best_by_search
