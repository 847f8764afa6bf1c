"""``--device cpu,cpu``: workers that keep the supernet open, and the same files as one process leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas_core.cli import main
from nas_core.search import search
from tests.search.small import evaluate, on_devices, one_limit, same_files
from tests.search.toy_host import HOST, make_visible
from tests.toys import ROOT

COMMAND = [
    "--strategy",
    "evolution",
    "--set",
    "iterations=2",
    "--set",
    "population=12",
    "--set",
    "parents=4",
    "--no-measure",
]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    make_visible(tmp_path, monkeypatch)

    def make(**settings: Any) -> Path:
        (tmp_path / "net.toy").write_text(json.dumps(settings))
        return tmp_path / "net.toy"

    return make


def pids(folder: Path) -> list[int]:
    return [int(line.split()[0]) for line in (folder / "opened.txt").read_text().splitlines()]


def running(folder: Path) -> list[int]:
    return [pid for pid in pids(folder) if pid != os.getpid() and Path(f"/proc/{pid}").exists()]


def test_the_files_are_those_of_one_process_and_each_worker_opens_once(
    tmp_path: Path, checkpoint: Callable[..., Path]
) -> None:
    """Some evaluations raise, some have no loss."""
    on_devices(checkpoint(fail=True), tmp_path / "two", iterations=3)
    search(one_limit(3), evaluate, tmp_path / "one", progress=False)
    same_files(tmp_path / "two", tmp_path / "one")
    assert len(pids(tmp_path)) == 2 and not running(tmp_path)
    on_devices(checkpoint(fail=True), tmp_path / "two", iterations=3)  # all is known: nothing is started
    assert len(pids(tmp_path)) == 2


def test_an_architecture_that_kills_its_workers_is_recorded_as_failed(
    tmp_path: Path, checkpoint: Callable[..., Path]
) -> None:
    victim = one_limit(1)["latency_ms<=3000"].ask(4)[-1]
    on_devices(checkpoint(die=victim.key), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    (failed,) = [record for record in records if "error" in record]
    assert failed["key"] == victim.key
    assert failed["error"] == "two workers died computing it, the last on cpu"


PROGRAM = """
import sys
from pathlib import Path
from tests.search.small import on_devices
on_devices(Path(sys.argv[1]), Path(sys.argv[2]), 2)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_while_workers_evaluate_it_continues_identically(
    tmp_path: Path, checkpoint: Callable[..., Path], how: signal.Signals
) -> None:
    path, folder = checkpoint(fail=True, wait_s=0.2), tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(folder)], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        if (folder / "journal.jsonl").exists() and (folder / "journal.jsonl").read_bytes().count(b"\n") > 3:
            break
        time.sleep(0.02)
    assert process.poll() is None
    process.send_signal(how)
    process.wait(30)
    deadline = time.monotonic() + 30
    while running(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(tmp_path)
    checkpoint(fail=True)
    on_devices(path, folder, 2)
    search(one_limit(2), evaluate, tmp_path / "one", progress=False)
    same_files(folder, tmp_path / "one")


def test_the_command(tmp_path: Path, checkpoint: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = checkpoint(fail=True)
    for name, device in (("one", "cpu"), ("two", "cpu,cpu")):
        options = ["--checkpoint", str(path), "--out", str(tmp_path / name), "--limit", "params_m=20", *COMMAND]
        assert main(["search", *options, "--device", device]) == 0
    for file in ("journal.jsonl", "state.json", "pareto.csv", "finalists.json"):
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes(), file
    config = yaml.safe_load((tmp_path / "two" / "config.yaml").read_text())
    assert config["notes"]["device"] == "cpu,cpu" and config["settings"]["precision"] == "fp32"
    assert len(pids(tmp_path)) == 1 + 1 + 2  # each command looks up the space
    assert HOST.options["device"] == "cpu" and "precision" not in HOST.options
