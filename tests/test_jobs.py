"""Work in jobs of submitit's local executor: order, failures, lost jobs, nothing left behind."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, DataError, MissingHostError, NasExtError
from nas_core.jobs import Failure, JobPool, JobsConfig

ROOT = Path(__file__).resolve().parents[1]


def open_numbers(folder: str) -> Callable[[Any], dict[str, Any]]:
    """In a job: halves numbers, and does as texts say."""
    opened = len(list(Path(folder).glob("opened-*")))
    (Path(folder) / f"opened-{os.getpid()}").write_text(str(opened))

    def each(item: Any) -> dict[str, Any]:
        if item == "raise":
            raise ValueError("not\nhalved")
        if item == "refuse":
            raise DataError("no data in here")
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "die once" and not (Path(folder) / "died").exists():
            (Path(folder) / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "wait":
            time.sleep(60)
        return {"half": item / 2 if not isinstance(item, str) else float("nan"), "job": os.getpid()}

    return each


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit", reason="needs submitit")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(
    tmp_path: Path, items: Sequence[Any], opener: Callable[..., Any] = open_numbers, **config: Any
) -> Iterator[dict[str, Any] | Failure]:
    pool = JobPool(JobsConfig(**{"jobs": 2, "per_job": 3, **config}), tmp_path / "jobs")
    return pool.map(opener, {"folder": str(tmp_path)}, items)


def halves(outcomes: Iterator[dict[str, Any] | Failure]) -> list[Any]:
    return [outcome.reason if isinstance(outcome, Failure) else outcome["half"] for outcome in outcomes]


def test_results_come_in_order_and_single_failures_stay_single(tmp_path: Path) -> None:
    outcomes = list(run(tmp_path, [1, 2, "raise", 4, 5, 0.1]))
    assert halves(iter(outcomes)) == [0.5, 1.0, "ValueError: not halved", 2.0, 2.5, 0.05]
    assert len({outcome["job"] for outcome in outcomes if not isinstance(outcome, Failure)}) == 2
    assert len(list(tmp_path.glob("opened-*"))) == 2
    assert not (tmp_path / "jobs").exists()


def test_what_two_jobs_were_lost_over_has_failed_alone(tmp_path: Path) -> None:
    first, lost, last = halves(run(tmp_path, [1, "die", 3], jobs=1))
    assert (first, last) == (0.5, 1.5)
    assert lost.startswith("two of its jobs were killed, the last ")
    log = tmp_path / lost.rpartition("see ")[2]
    assert log.is_file()
    assert len(list(tmp_path.glob("opened-*"))) == 5  # halved until it is alone


def test_errors_of_the_user_end_everything(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(NasExtError, match=r"^no data in here$"):
        list(run(tmp_path, ["refuse", "wait"], per_job=1))
    assert time.monotonic() - start < 30
    assert not (tmp_path / "jobs").exists()


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended may wait to be buried by whoever adopted it."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_no_job_is_left_when_the_results_are_no_longer_wanted(tmp_path: Path) -> None:
    outcomes = run(tmp_path, [1, "wait"], per_job=1)
    first = next(outcomes)
    assert first["half"] == 0.5  # type: ignore[index]
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("opened-*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = {int(file.name.partition("-")[2]) for file in tmp_path.glob("opened-*")}
    outcomes.close()  # type: ignore[attr-defined]
    assert len(pids) == 2
    deadline = time.monotonic() + 120  # a busy machine takes its time to bury them
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    assert not (tmp_path / "jobs").exists()


def test_without_slurm_and_without_submitit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="srun") as caught:
        list(run(tmp_path, [1], cluster="slurm"))
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingHostError, match=r"pip install 'nas-ext\[submitit\]'"):
        JobPool(JobsConfig(), tmp_path)


def test_what_slurm_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Slurm here: an ``sbatch`` that records its input and fails."""
    for name in ("srun", "sbatch"):
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\ncp "$1" {tmp_path}/asked 2>/dev/null\necho "sbatch: no such partition" >&2\nexit 1\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    resources = {"gpus": 1, "cpus": 4, "memory_gb": 16.0, "partition": "long", "slurm": {"constraint": "a100"}}
    with pytest.raises(NasExtError, match=r"cannot submit a job to cluster slurm.*no such partition") as caught:
        list(run(tmp_path, [1], cluster="slurm", timeout_min=90, **resources))
    assert "\n" not in str(caught.value)
    lines = (tmp_path / "asked").read_text().splitlines()
    for option in ("partition=long", "constraint=a100", "time=90", "mem=16GB", "cpus-per-task=4", "gpus-per-node=1"):
        assert f"#SBATCH --{option}" in lines, option
