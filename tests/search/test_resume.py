"""A search killed at any moment continues to the identical journal and archive."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.search import EvolutionConfig, search
from tests.search.runs import run
from tests.search.small import evaluate, one_limit, same_files

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import sys, time
from pathlib import Path

from tests.search.runs import run
from nas_core.search import search
from tests.search.runs import run
from tests.contracts.strategy import quality

def evaluate(architecture):
    time.sleep(0.004)
    return {"loss": quality(architecture)}

run(Path(sys.argv[1]), evaluate)
"""

OTHER = EvolutionConfig(iterations=3, population=20, parents=5)
COMPARED = ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json")


def start(folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], cwd=ROOT, env=environment)


def test_killed_at_random_moments_it_ends_identically(tmp_path: Path) -> None:
    full, broken = tmp_path / "whole", tmp_path / "broken"
    assert start(full).wait(60) == 0
    moments = random.Random(0)
    lines = len((full / "journal.jsonl").read_bytes().splitlines())
    kills = []
    for part in range(1, 5):  # killed a moment after a number of lines, so that progress does not depend on the machine
        process = start(broken)
        journal = broken / "journal.jsonl"
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") >= part * lines // 6:
                break
        time.sleep(moments.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        kills.append(process.wait(10))
    assert kills.count(-signal.SIGKILL) >= 3
    assert start(broken).wait(60) == 0
    for name in COMPARED:
        assert (broken / name).read_bytes() == (full / name).read_bytes(), name


def test_cut_at_any_byte_the_journal_is_completed(tmp_path: Path) -> None:
    """What a kill or a full disk can leave: every prefix of the journal, with or without the files derived from it."""
    run(tmp_path / "whole")
    content = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    moments = random.Random(1)
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        (folder / "config.yaml").write_bytes((tmp_path / "whole" / "config.yaml").read_bytes())
        (folder / "journal.jsonl").write_bytes(content[: moments.randrange(len(content))])
        (folder / "state.json").write_text("{half wri")
        run(folder)
        for name in COMPARED:
            assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def never(architecture: Any) -> dict[str, float]:
    raise AssertionError("nothing may be evaluated")


def damage(lines: list[bytes], kind: str) -> list[bytes]:
    record = json.loads(lines[40])
    changed = {
        "duplicated": [lines[40], lines[40]],
        "missing": [],
        "damaged": [lines[40][:30] + b"\n"],
        "of another": [json.dumps({**record, "genes": {"decoder.layers": 1}}).encode() + b"\n"],
        "without metrics": [json.dumps({**record, "metrics": 3}).encode() + b"\n"],
    }
    return [*lines[:40], *changed[kind], *lines[41:]] if kind in changed else [*lines, lines[-1]]


def test_runs_that_cannot_be_continued_are_left_as_they_are(tmp_path: Path) -> None:
    folder, journal = tmp_path / "run", tmp_path / "run" / "journal.jsonl"
    run(folder)
    full = journal.read_bytes()
    for kind in ("duplicated", "missing", "damaged", "of another", "without metrics", "last twice"):
        journal.write_bytes(b"".join(damage(full.splitlines(keepends=True), kind)))
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with pytest.raises(DataError, match=r"journal\.jsonl, line (40|41|42|\d\d+) ") as caught:
            run(folder, never)
        assert "\n" not in str(caught.value)
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before, kind
    journal.write_bytes(full)
    for options in ({"config": OTHER}, {"limits": (3000.0,)}, {"settings": {"checkpoint": "other"}}):
        with pytest.raises(ConfigError, match="give the same settings to continue it"):
            run(folder, never, **options)
    assert journal.read_bytes() == full
    (folder / "config.yaml").unlink()
    with pytest.raises(DataError, match=r"no config\.yaml"):
        run(folder, never)


def test_a_full_disk_leaves_a_run_that_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth write fails, with all later ones."""
    search(one_limit(2), evaluate, tmp_path / "whole", progress=False)
    real, calls = os.fsync, itertools.count()
    monkeypatch.setattr(os, "fsync", lambda descriptor: (next(calls), real(descriptor))[1])
    search(one_limit(2), evaluate, tmp_path / "count", progress=False)
    writes, stopped = next(calls), 0
    complete = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    for moment in range(1, writes, 8):
        folder, now = tmp_path / str(moment), itertools.count()

        def full(descriptor: int, moment: int = moment, now: Iterator[int] = now) -> None:
            if next(now) >= moment:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        try:
            search(one_limit(2), evaluate, folder, progress=False)
        except NasExtError as error:
            stopped += 1
            assert str(error).startswith(f"cannot write {folder}")
        monkeypatch.setattr(os, "fsync", real)
        kept = (folder / "journal.jsonl").read_bytes() if (folder / "journal.jsonl").exists() else b""
        assert kept == complete[: len(kept)] and (kept in (b"", complete) or kept.endswith(b"\n"))
        search(one_limit(2), evaluate, folder, progress=False)
        same_files(folder, tmp_path / "whole")
    assert stopped > writes // 16
