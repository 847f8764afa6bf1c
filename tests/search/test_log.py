"""What is read from search.log is what a search writes there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from nas_core.search import progress
from nas_core.search.log import Logged, read_log
from nas_core.search.progress import Progress


def test_a_log_is_read_as_it_was_written(tmp_path: Path, monkeypatch) -> None:
    now = [1.0]
    monkeypatch.setattr(progress, "clock", lambda: now[0])
    file = tmp_path / "search.log"
    with Progress(file, 3000, 1, show=False) as told:
        told.told()  # known from before
        told.told()
        told.begin()
        first = read_log(file)
        for _ in range(3):
            now[0] += 40
            told.evaluated()
            told.told()
        second = read_log(file)
    assert first is not None and first.began.tzinfo is not None
    assert abs((datetime.now().astimezone() - first.began).total_seconds()) < 60
    assert (first.before, first.total, first.told) == (2, 3000, 2)
    assert second == Logged(first.began, 2, 3000, 4)  # its lines come once a minute
    with Progress(file, 3000, 1, show=False) as told:
        told.begin()
        again = read_log(file)
    assert again is not None and (again.before, again.total, again.told) == (0, 3000, 0)


def test_files_that_tell_nothing(tmp_path: Path) -> None:
    file = tmp_path / "search.log"
    assert read_log(file) is None
    file.write_bytes(b"\xff\xfe")
    assert read_log(file) is None
    file.write_text("yesterday at most 5 evaluations to come\n2026-01-01 10:00:00 at most 5 evaluations to come\n\n")
    assert read_log(file) is None
