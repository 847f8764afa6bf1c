"""Work that is killed at random moments, as machines and schedulers do it, and then finished."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["KILLS", "finished", "killed_and_finished"]

KILLS = 5 if "NAS_EXT_HARDENING" in os.environ else 1
"""How often work is killed before it may end; more often in the nightly form"""
WAIT_S = 240


def _silent(work: Callable[[], object]) -> None:
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    work()


def _begin(work: Callable[[], object]) -> multiprocessing.process.BaseProcess:
    """The work in a process of its own; it is a fork, which has imported all there is to import."""
    process = multiprocessing.get_context("fork").Process(target=_silent, args=(work,))
    process.start()
    return process


def _end(process: multiprocessing.process.BaseProcess) -> None:
    process.join(WAIT_S)
    assert process.exitcode == 0, process.exitcode


def finished(work: Callable[[], object]) -> float:
    """Do the work in peace; the seconds it took."""
    start = time.monotonic()
    _end(_begin(work))
    return time.monotonic() - start


def killed_and_finished(work: Callable[[], object], folder: Path, seconds: float, seed: int) -> list[int]:
    """Kill the work ``KILLS`` times and let it end; the files that ``folder`` held after each kill.

    Moments are drawn from the ``seconds`` that the whole work takes, so that most kills meet it somewhere in between.
    """
    stream, seen = random.Random(seed), []
    for _ in range(20 * KILLS):
        process = _begin(work)
        time.sleep(stream.random() * seconds)
        process.kill()
        process.join(WAIT_S)
        if process.exitcode == -signal.SIGKILL:
            seen.append(sum(path.is_file() for path in folder.rglob("*")))
        if len(seen) == KILLS:
            break
    assert len(seen) == KILLS, "the work always ended before it could be killed"
    _end(_begin(work))
    return seen
