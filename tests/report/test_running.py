"""Pages of searches that run, stopped or died: none looks more alive than its search."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.locks import only_process
from nas_core.report import read_run, watch_report, write_report
from nas_core.report.search.progress import following, progress_of
from tests.report.pages import ReadPage
from tests.report.runs import made_run, unfinished


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A search that was killed after 12 of 20 evaluations, of which each took 30 s."""
    folder = made_run(tmp_path / "run")
    unfinished(folder, 12)
    began = datetime.fromtimestamp((folder / "journal.jsonl").stat().st_mtime - 12 * 30, UTC).isoformat(" ", "seconds")
    (folder / "search.log").write_text(f"{began} at most 20 evaluations to come\n", encoding="utf-8")
    return folder


def running(folder: Path) -> Any:
    return only_process(folder / "journal.lock", "searches", "wait")


def test_a_search_that_runs(run: Path) -> None:
    with running(run):
        progress = progress_of(read_run(run))
        page = ReadPage(write_report(run, reload_s=7).read_text(encoding="utf-8"))
    assert (progress.state, progress.evaluations, progress.most) == ("running", 12, 20)
    assert progress.each_s == pytest.approx(30, abs=0.2) and progress.left_s == pytest.approx(240, abs=2)
    assert "Running: 12 of at most 20 evaluations, at most about 4 min left." in page.text
    assert "page written at 20" in page.text and "finalists are chosen at its end" in page.text
    data = page.data["following"]
    assert data["alive"] and data["every_s"] == 7 and data["patience_s"] == pytest.approx(150, abs=2)
    assert '<noscript><meta http-equiv="refresh" content="7"></noscript>' in (run / "report.html").read_text("utf-8")


def test_a_search_that_stopped(run: Path) -> None:
    text = write_report(run).read_text(encoding="utf-8")
    assert "Not running: the search stopped after 12 of at most 20 evaluations. The same command" in text
    assert not ReadPage(text).data["following"]["alive"] and 'http-equiv="refresh"' not in text
    (run / "journal.lock").write_text("process 999999999 on " + os.uname().nodename, encoding="utf-8")
    assert progress_of(read_run(run)).state == "stopped", "whoever held the lock was killed"
    (run / "search.log").unlink()
    assert "Not running: 12 evaluations were made" in write_report(run).read_text(encoding="utf-8")


def test_a_search_of_another_machine_is_alive_as_long_as_news_come(run: Path) -> None:
    (run / "journal.lock").write_text("process 1 on elsewhere", encoding="utf-8")
    found = progress_of(read_run(run))
    assert found.state == "unknown" and following(found).alive  # type: ignore[union-attr]
    before = time.time() - 3600
    os.utime(run / "journal.jsonl", (before, before))
    assert progress_of(read_run(run)).state == "stopped"


def test_a_search_that_has_ended_is_not_followed(tmp_path: Path) -> None:
    folder = made_run(tmp_path)
    assert following(progress_of(read_run(folder))) is None
    assert "following" not in ReadPage(write_report(folder).read_text(encoding="utf-8")).data


def test_watching_ends_with_the_search(run: Path, tmp_path: Path) -> None:
    later = made_run(tmp_path / "whole")
    told: list[str] = []
    lock = running(run)
    lock.__enter__()
    rounds = iter(range(100))

    def sleep(seconds: float) -> None:
        assert seconds == 0.5
        if next(rounds) == 2:
            for name in ("journal.jsonl", "finalists.json"):
                (run / name).write_bytes((later / name).read_bytes())
            lock.__exit__(None, None, None)

    page = watch_report(run, every_s=0.5, tell=told.append, sleep=sleep)
    assert page == run / "report.html" and next(rounds) < 10
    assert [line.partition(": ")[2] for line in told] == ["running, 12 of at most 20", "ended, 20 of at most 20"]
    assert "Running" not in ReadPage(page.read_text(encoding="utf-8")).text


def test_watching_begins_before_the_first_evaluation(tmp_path: Path) -> None:
    folder = made_run(tmp_path / "run")
    journal = (folder / "journal.jsonl").read_bytes()
    (folder / "journal.jsonl").write_text("", encoding="utf-8")

    def sleep(seconds: float) -> None:
        (folder / "journal.jsonl").write_bytes(journal)

    with running(folder):
        watch_report(folder, tell=str, sleep=sleep)
    (folder / "journal.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="holds no evaluation yet"):
        watch_report(folder, tell=str)


def test_a_folder_that_vanishes_ends_it(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder"), running(run):
        watch_report(run, tell=str, sleep=lambda seconds: run.rename(tmp_path / "away") and None)


def test_the_command(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["report", str(run), "--watch"]) == 0
    assert "report.html: stopped, 12 of at most 20" in capsys.readouterr().out
    for arguments in (
        ["--every", "0"],
        ["--every", "-1", "--watch"],
        ["--every", "nan"],
        ["--every", "inf"],
        ["--every", "1e7"],
    ):
        assert main(["report", str(run), *arguments]) == 2
        assert "expected seconds above 0" in capsys.readouterr().err
    assert main(["report", str(run), str(run), "--watch"]) == 2
    assert "for the report of one search" in capsys.readouterr().err

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with running(run):
        assert main(["report", str(run), "--watch"]) == 130
    assert "stays as it is" in capsys.readouterr().err
