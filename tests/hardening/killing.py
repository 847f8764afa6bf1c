"""Work that is killed at random moments, as machines and schedulers do it, and then finished."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tqdm import tqdm

__all__ = ["KILLS", "finished", "killed_and_finished"]

KILLS = 4 if "NAS_EXT_HARDENING" in os.environ else 1
"""How often work is killed before it may end; more often in the nightly form"""
WAIT_S = 240


def _silent(work: Callable[[], object]) -> None:
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    torch.set_num_threads(1)
    tqdm.set_lock(threading.RLock())  # tqdm's own is shared by all forks, and stays locked by one that is killed
    work()


def _begin(work: Callable[[], object]) -> multiprocessing.process.BaseProcess:
    """The work in a process of its own; it is a fork, which has imported all there is to import."""
    process = multiprocessing.get_context("fork").Process(target=_silent, args=(work,))
    process.start()
    return process


def finished(work: Callable[[], object]) -> None:
    """Do the work in peace."""
    process = _begin(work)
    process.join(WAIT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode == 0, process.exitcode


def killed_and_finished(
    work: Callable[[], object], done: Callable[[], Sequence[Any]], total: int, seed: int
) -> list[list[Any]]:
    """Kill the work ``KILLS`` times and let it end; what was ``done`` at each kill.

    It is killed a moment after so much was done, of the ``whole`` that there is to do, so that how far it came does not
    depend on the machine. At least one kill meets it between its first and its last thing.
    """
    stream, recorded = random.Random(seed), []
    for part in range(1, KILLS + 1):
        process, deadline = _begin(work), time.monotonic() + WAIT_S
        while process.is_alive() and len(done()) < max(1, part * total // (KILLS + 1)) and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(stream.random() * 0.02)
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            recorded.append(list(done()))
    assert any(0 < len(each) < total for each in recorded), (
        f"no kill met unfinished work: {[len(each) for each in recorded]}"
    )
    finished(work)
    return recorded
