"""How long a search takes, said from what is evaluated and not from what was known; and its log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nas_core.progress
from nas_core.search import RandomConfig, RandomSearch, progress, search
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
    for module in (progress, nas_core.progress):
        monkeypatch.setattr(module, "clock", result)
    return result


def log(folder: Path) -> list[str]:
    """Its lines without the times that they begin with."""
    lines = (folder / "search.log").read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d ", line) for line in lines)
    return [line[26:] for line in lines]


def taking(clock: Clock, seconds: float) -> Callable[[Architecture], dict[str, float]]:
    def evaluate(architecture: Architecture) -> dict[str, float]:
        clock.now += seconds
        return {"loss": quality(architecture)}

    return evaluate


def test_what_the_journal_knows_takes_no_time(tmp_path: Path, clock: Clock) -> None:
    """Thirty of the first run's results are read in no time; the time that is left is that of the other ones."""
    run(tmp_path, taking(clock, 3.0), limits=(3000.0,))
    path = tmp_path / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:30]))
    (tmp_path / "search.log").unlink()
    run(tmp_path, taking(clock, 10.0), limits=(3000.0,))
    first, estimate, *_, last = log(tmp_path)
    assert first == "at most 35 evaluations to come, 30 results were known"
    assert estimate.startswith("10 s each so far: about 6 min for at most 33 more")  # said after the third
    assert last.startswith(f"ended: {len(lines) - 30} evaluated")
    before = (tmp_path / "search.log").read_bytes()
    run(tmp_path, limits=(3000.0,))  # all is known: nothing to log
    assert (tmp_path / "search.log").read_bytes() == before


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
