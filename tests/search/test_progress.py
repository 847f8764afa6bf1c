"""How long a search takes, said from what is evaluated and not from what was known; and its log."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nas_core.progress
from nas_core.progress import duration, slow_training
from nas_core.search import Constraint, InfeasibleError, RandomConfig, RandomSearch, progress
from nas_core.search.progress import Progress
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, quality
from tests.search.runs import journal, run


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (progress, nas_core.progress):
        monkeypatch.setattr(module, "clock", found)
    return found


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


def test_it_is_said_after_the_first_evaluations_and_once_a_minute(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, taking(clock, 3.0), limits=(3000.0,))
    evaluations = len(journal(tmp_path))
    first, estimate, *minutes, last = log(tmp_path)
    assert first == "at most 65 evaluations to come"
    assert estimate == (
        "3 s each: about 3 min for at most 60 more, and the search's own work; Ctrl-C stops, the same command continues"
    )
    assert last == f"ended: {evaluations} evaluated in {duration(3 * evaluations)}"
    assert len(minutes) == 3 * evaluations // 60
    assert minutes[1].startswith("latency_ms<=3000: 40 of at most 65 known, 40 of them evaluated now, best loss ")
    assert minutes[1].endswith(", 3 s each, about 75 s for at most 25 more")
    assert capsys.readouterr().err == ""  # progress=False


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
    assert estimate.startswith("10 s each: about 6 min for at most 33 more")  # said after the third
    assert last.startswith(f"ended: {len(lines) - 30} evaluated")
    before = (tmp_path / "search.log").read_bytes()
    run(tmp_path, limits=(3000.0,))  # all is known: nothing to log
    assert (tmp_path / "search.log").read_bytes() == before


def test_several_at_once_are_timed_together(tmp_path: Path, clock: Clock) -> None:
    """Four at once take as long as one: the first that comes says nothing yet."""
    with Progress(tmp_path / "search.log", 40, 4, False) as bar:
        for _ in range(3):
            bar.begin()
            clock.now += 100.0
            for _ in range(4):
                bar.evaluated()
                bar.told()
    _, first, estimate, second, *_ = log(tmp_path)
    assert first.endswith("1 of at most 40 known, 1 of them evaluated now")
    assert estimate.startswith("25 s each: about 15 min for at most 36 more")
    assert second.endswith("5 of them evaluated now, 25 s each, about 15 min for at most 35 more")


def test_a_search_that_ends_early_takes_its_rest_along(tmp_path: Path, clock: Clock) -> None:
    with Progress(tmp_path / "search.log", 100, 1, False) as bar:
        for _ in range(10):
            bar.begin()
            clock.now += 7.0
            bar.evaluated()
            bar.told()
        bar.drop(40)
        clock.now += 60.0
        bar.told()
    assert "11 of at most 60 known" in log(tmp_path)[-2]


@pytest.mark.parametrize(("error", "said"), [(KeyboardInterrupt, "KeyboardInterrupt"), (OSError, "OSError")])
def test_a_search_that_stops_says_how_to_go_on(tmp_path: Path, error: type[BaseException], said: str) -> None:
    with pytest.raises(error), Progress(tmp_path / "search.log", 10, 1, False) as bar:
        bar.begin()
        bar.evaluated()
        raise error
    assert log(tmp_path)[-1] == f"stopped ({said}), 1 evaluated; the same command continues"


def test_without_a_terminal_the_lines_are_printed(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(tmp_path / "search.log", 10, 1, True) as bar:
        for _ in range(10):
            bar.begin()
            clock.now += 30.0
            bar.evaluated()
            bar.told()
    printed = capsys.readouterr().err.splitlines()
    assert [line for line in printed if line] == log(tmp_path)


def test_a_slow_predictor_gives_up_early() -> None:
    asked: list[int] = []

    def predict(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return np.full(len(rows), 2.0)

    with pytest.raises(InfeasibleError, match="lowest values reached: latency_ms 2"):
        RandomSearch(SPACE, [Constraint("latency_ms", 1.0, predict, together=8)], RandomConfig(batch=10)).start()
    assert sum(asked) < 1000


@pytest.fixture
def six_seconds_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on six seconds whenever it is read."""
    monkeypatch.setattr(nas_core.progress, "clock", itertools.count(0, 6).__next__)


def test_the_clock_of_a_training_starts_before_its_first_step(
    six_seconds_each: None, capsys: pytest.CaptureFixture[str]
) -> None:
    report = slow_training("training x")
    for step in (1, 2, 3):
        report(step, 5, 0.25)
    assert capsys.readouterr().err.splitlines() == ["training x: 1 of 5 steps, loss 0.25, after 6 s, about 24 s left"]
