"""Evaluations in batches and in jobs: the same journal as one after the other, whatever happens to the jobs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nas_core.jobs import Failure
from nas_core.search import (
    Strategy,
    search,
)
from nas_core.space import Architecture
from tests.search.small import STRATEGIES, evaluate, in_jobs, one_limit, same_files
from tests.search.toy_host import make_visible
from tests.toys import ROOT


def strategies(name: str = "evolution") -> dict[str, Strategy]:
    return {f"latency_ms<={value:g}": STRATEGIES[name](value) for value in (3000.0, 2500.0)}


def many(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
    for architecture in architectures:
        try:
            yield evaluate(architecture)
        except RuntimeError as error:
            yield Failure.of(error)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("batch_size", [7])
def test_batches_give_the_same_files(tmp_path: Path, name: str, batch_size: int) -> None:
    search(strategies(name), evaluate, tmp_path / "one", progress=False)
    sizes = []

    def counted(architectures: Sequence[Architecture]) -> Iterator[Mapping[str, Any] | Failure]:
        sizes.append(len(architectures))
        return many(architectures)

    options: dict[str, Any] = {"evaluate_many": counted, "batch_size": batch_size, "progress": False}
    result = search(strategies(name), None, tmp_path / "many", **options)
    same_files(tmp_path / "one", tmp_path / "many")
    assert "out of memory" in (tmp_path / "one" / "journal.jsonl").read_text()
    assert sum(sizes) == result.evaluations
    assert 1 < max(sizes) <= batch_size


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    pytest.importorskip("submitit", reason="needs submitit")
    make_visible(tmp_path, monkeypatch)

    def make(**settings: Any) -> Path:
        (tmp_path / "net.toy").write_text(json.dumps(settings))
        return tmp_path / "net.toy"

    return make


PROGRAM = """
import sys
from pathlib import Path
from tests.search.small import in_jobs
in_jobs(Path(sys.argv[1]), Path(sys.argv[2]), 2)
"""


@pytest.mark.slow
def test_killed_while_jobs_run_it_continues_identically(tmp_path: Path, checkpoint: Callable[..., Path]) -> None:
    path, folder = checkpoint(fail=True, wait_s=0.05), tmp_path / "jobs"
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), str(folder)], cwd=ROOT)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if (folder / "journal.jsonl").exists() and len((tmp_path / "opened.txt").read_text().splitlines()) > 2:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    in_jobs(path, folder, 2)
    search(one_limit(2), evaluate, tmp_path / "one", progress=False)
    same_files(folder, tmp_path / "one")
    pids = {int(line.split()[0]) for line in (tmp_path / "opened.txt").read_text().splitlines()}
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
