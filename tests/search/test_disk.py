"""A full disk or a read-only folder stops a search with one line; the journal stays good, and the search goes on."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nas_core.errors import NasExtError
from nas_core.search import search
from tests.search.small import evaluate, one_limit, same_files
from tests.search.toy_host import make_visible
from tests.warm import python

SMALL = ["--set", "iterations=3", "--set", "parents=4", "--set", "mutations=5", "--set", "crossovers=3", "--no-measure"]

PROGRAM = """
import os, resource, sys
from pathlib import Path
from nas_core.cli import main

kind, value, warm_up, *arguments = sys.argv[1:]
assert main([*arguments, "--out", warm_up]) == 0  # everything is imported, whoever may read it later
if kind == "size":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(value), int(value)))
elif os.geteuid() == 0:  # whom no rights stop
    try:
        os.setgid(65534)
        os.setuid(65534)
    except OSError:
        sys.exit(77)
sys.exit(main([*arguments, "--out", value if kind == "folder" else os.environ["RUN"]]))
"""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Readable by everybody, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "host").mkdir()
        make_visible(folder / "host", monkeypatch)
        (folder / "net.toy").write_text(json.dumps({}))
        (folder / "opened.txt").touch()
        (folder / "opened.txt").chmod(0o666)
        yield folder
        for path in (folder, *folder.iterdir()):
            if path.is_dir():
                path.chmod(0o755)


def run(folder: Path, kind: str, value: object) -> subprocess.CompletedProcess[str]:
    arguments = ["search", "--checkpoint", str(folder / "net.toy"), *SMALL]
    program, environment = python()
    command = [program, "-c", PROGRAM, kind, str(value), str(folder / "whole"), *arguments]
    environment["RUN"] = str(folder / "run")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip("root cannot become another user here")
    return done


def one_line(done: subprocess.CompletedProcess[str], said: str) -> None:
    lines = [line for line in done.stderr.splitlines() if line.startswith("nas-ext") or "Error" in line]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("nas-ext: error: cannot ")
    assert said in lines[0]


def test_a_disk_that_fills_up_during_the_search(folder: Path) -> None:
    """The limit on the size of files lets a part of a record through, as a full disk does."""
    assert run(folder, "size", -1).returncode == 0
    shutil.rmtree(folder / "run")
    whole = (folder / "whole" / "journal.jsonl").read_bytes()
    limit = len(whole) * 2 // 3
    done = run(folder, "size", limit)
    one_line(done, "journal.jsonl: File too large")
    kept = (folder / "run" / "journal.jsonl").read_bytes()
    assert limit - 1000 < len(kept) <= limit
    assert kept == whole[: len(kept)]
    assert kept.endswith(b"\n")
    assert run(folder, "size", -1).returncode == 0
    same_files(folder / "run", folder / "whole")


def test_a_read_only_folder(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o555)
    one_line(run(folder, "folder", folder / "closed" / "run"), "closed/run: Permission denied")
    assert not list((folder / "closed").iterdir())
    half = folder / "half"
    shutil.copytree(folder / "whole", half)
    lines = (half / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (half / "journal.jsonl").write_bytes(b"".join(lines[:9]))
    for path in (half, *half.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    one_line(run(folder, "folder", half), "Permission denied")
    assert (half / "journal.jsonl").read_bytes() == b"".join(lines[:9])


@pytest.mark.parametrize("stays", [False, True])
def test_a_disk_full_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: bool) -> None:
    """Every second write fails, alone or with all after it; whatever is on the disk then is good to go on with."""
    search(one_limit(2), evaluate, tmp_path / "whole", progress=False)
    real, calls, stopped = os.fsync, itertools.count(), 0

    def count(descriptor: int) -> None:
        next(calls)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", count)
    search(one_limit(2), evaluate, tmp_path / "count", progress=False)
    writes = next(calls)
    assert writes > 25
    whole = (tmp_path / "whole" / "journal.jsonl").read_bytes()
    for moment in range(stays, writes, 2):
        folder, now = tmp_path / str(moment), itertools.count()

        def full(descriptor: int, moment: int = moment, now: Iterator[int] = now) -> None:
            if (call := next(now)) == moment or (stays and call > moment):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        try:
            search(one_limit(2), evaluate, folder, progress=False)
        except NasExtError as error:
            stopped += 1
            assert str(error).startswith(f"cannot write {folder}")
            assert "No space left on device" in str(error)
        monkeypatch.setattr(os, "fsync", real)
        kept = (folder / "journal.jsonl").read_bytes() if (folder / "journal.jsonl").exists() else b""
        assert kept == whole[: len(kept)]
        assert kept in (b"", whole) or kept.endswith(b"\n")
        search(one_limit(2), evaluate, folder, progress=False)
        same_files(folder, tmp_path / "whole")
        assert not [path for path in folder.rglob(".*") if path.name.endswith(".part")]
    assert stopped > writes // 4
