"""Progress and sessions of a search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas_core.progress
from nas_core.search import RandomConfig, RandomSearch, search
from nas_core.search.sessions import read_sessions
from nas_core.space import Architecture, get_space
from tests.contracts.strategy import quality
from tests.search.runs import run


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    result = Clock()
    monkeypatch.setattr(nas_core.progress, "clock", result)
    return result


def taking(clock: Clock, seconds: float) -> Callable[[Architecture], dict[str, float]]:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        clock.now += seconds
        return {"loss": quality(architecture)}

    return evaluate


def test_earlier_results_take_no_time(tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, taking(clock, 3.0), limits=(3000.0,))
    path = tmp_path / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:30]))
    capsys.readouterr()
    run(tmp_path, taking(clock, 10.0), limits=(3000.0,), progress=True)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "search: 1 of 35 evaluations after 10 s, about 6 min left"
    assert second.startswith("search: 7 of 35 evaluations, best loss ") and "after 70 s, about 5 min left" in second
    run(tmp_path, limits=(3000.0,), progress=True)
    assert capsys.readouterr().err == ""


class Interrupted(BaseException):
    """As Ctrl-C."""


def interrupted(folder: Path, fail_at: int | None = None) -> Any:
    calls = []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        calls.append(architecture)
        if len(calls) == fail_at:
            raise Interrupted
        return {"loss": 1.0}

    strategy = RandomSearch(get_space("hat_small"), config=RandomConfig(evaluations=8))
    return search({"all": strategy}, evaluate, folder, progress=False)


def test_each_part_of_an_interrupted_search(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        interrupted(tmp_path, fail_at=4)
    (first,) = read_sessions(tmp_path)
    assert first["seconds"] >= 0 and first["machine"]["cores"] >= 1 and first["machine"]["cpu"]
    interrupted(tmp_path)
    sessions = read_sessions(tmp_path)
    assert len(sessions) == 2 and sessions[0] == first and sessions[1]["started"] >= first["started"]
    interrupted(tmp_path)  # nothing is evaluated any more
    assert read_sessions(tmp_path) == sessions
