"""Processes that stay: results in order, lost workers replaced, errors in one line, and none left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nas_core.errors import NasExtError
from nas_core.jobs import Failure
from nas_core.workers import WorkerPool
from tests.workers.working import opened

NAMES = ["cpu", "cpu"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Callable[..., WorkerPool]]:
    created: list[WorkerPool] = []

    def make(trouble: str = "") -> WorkerPool:
        arguments = [{"folder": str(tmp_path), "number": n, "trouble": trouble} for n in range(2)]
        created.append(WorkerPool(opened, arguments, NAMES))
        return created[-1]

    yield make
    for worker_pool in created:
        worker_pool.close()
    assert not left(tmp_path)


def pids(folder: Path) -> list[int]:
    path = folder / "opened.txt"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def left(folder: Path) -> list[int]:
    """Workers that still run."""
    return [pid for pid in pids(folder) if Path(f"/proc/{pid}").exists()]


def test_results_come_in_order_from_workers_that_stay(pool: Callable[..., WorkerPool], tmp_path: Path) -> None:
    workers = pool()
    assert list(workers.map([])) == [] and not pids(tmp_path)  # nothing to do, none is started
    items = [0.3, 1, 2, 3, 0.1, "last"]
    first = list(workers.map(items))
    second = list(workers.map(items))
    for results in (first, second):
        assert [result["item"] for result in results if not isinstance(result, Failure)] == items
    assert {result["worker"] for result in first if not isinstance(result, Failure)} == {0, 1}
    assert first[0]["threads"] == "1" and first[0]["nan"] != first[0]["nan"]  # type: ignore[index]
    assert len(pids(tmp_path)) == 2


def test_who_takes_only_what_there_is_leaves_the_workers_as_they_are(
    pool: Callable[..., WorkerPool], tmp_path: Path
) -> None:
    workers = pool()
    for _ in range(2):
        results = workers.map([1, 2])
        assert [next(results), next(results)]
        results.close()
    assert len(pids(tmp_path)) == 2
    results = workers.map([1, 60.0, 60.0])  # given up while something is computed
    next(results)
    results.close()
    assert not left(tmp_path)


def test_an_item_that_raises_has_failed_and_the_others_go_on(pool: Callable[..., WorkerPool]) -> None:
    results = list(pool().map([1, "raise", 2]))
    assert results[1] == Failure("ValueError: on two lines")
    assert [isinstance(result, Failure) for result in results] == [False, True, False]


def test_a_worker_that_dies_is_replaced_once(pool: Callable[..., WorkerPool], tmp_path: Path) -> None:
    results = list(pool().map([1, "die once", 2]))
    assert not any(isinstance(result, Failure) for result in results)
    assert len(pids(tmp_path)) in (2, 3)  # the other worker may be idle by then


def test_an_item_over_which_two_die_has_failed(pool: Callable[..., WorkerPool], tmp_path: Path) -> None:
    results = list(pool().map([1, "die", 2, 3, "die", 4]))
    assert [isinstance(result, Failure) for result in results] == [False, True, False, False, True, False]


@pytest.mark.parametrize(("trouble", "reason"), [("refused", "is damaged"), ("broken", "RuntimeError: no memory")])
def test_data_that_cannot_be_opened_end_everything(pool: Callable[..., WorkerPool], trouble: str, reason: str) -> None:
    with pytest.raises(NasExtError, match=reason):
        list(pool(trouble).map([1, 2]))


PROGRAM = """
import sys
from nas_core.workers import WorkerPool
from tests.workers.working import opened
pool = WorkerPool(opened, [{"folder": sys.argv[1], "number": n} for n in range(2)], ["cpu", "cpu"])
print(len(list(pool.map([0.01] * 4))), flush=True)
for result in pool.map([600.0] * 3):
    pass
"""


def heeded() -> None:
    """A program that was started in the background ignores interruptions, and so do those that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, how: signal.Signals) -> None:
    """In the middle of an item; and a program without a guard of its main part starts them."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=heeded,
    )
    assert process.stdout is not None and process.stdout.readline() == b"4\n"
    assert len(left(tmp_path)) == 2
    process.send_signal(how)
    process.wait(30)
    process.stdout.close()
    deadline = time.monotonic() + 30
    while left(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left(tmp_path)


def test_a_worker_whose_device_is_lost_answers_no_more(pool: Callable[..., WorkerPool]) -> None:
    """Every call of its process would fail; another one does the item."""
    items = ["lose the device", 0.0, 0.0, 0.0]
    results = list(pool().map(items))
    assert [result["item"] for result in results if not isinstance(result, Failure)] == items
