"""Training processes started by studies."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path

from nas_core.errors import DataError
from nas_core.files.writing import os_errors
from nas_core.locks import file_lock
from nas_core.progress import progress_bar
from nas_core.signals import sigterm_as_exit

LOG = "train.log"
"""Log file in the folder of a training."""


def train_all(commands: Mapping[Path, Sequence[str]], jobs: int, finished: Callable[[Path, float], None]) -> None:
    """Run training commands, ``jobs`` at a time; if one fails, stop all.

    Args:
        commands: existing folder for the log and checkpoints -> command.
        finished: function called with folder and seconds of each finished training.
    """
    with _processes_ended() as started, ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {pool.submit(_run, *item, jobs, started): item[0] for item in commands.items()}
            with progress_bar("training", len(waiting), "standalone run") as advance:
                for future in as_completed(waiting):
                    finished(waiting[future], future.result())
                    advance(1)
        except BaseException:
            started.end()  # before the pool waits for them
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Processes:
    def __init__(self) -> None:
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        self.running.add(process)
        if self.stopped:  # while it was started
            process.terminate()

    def end(self) -> None:
        self.stopped = True
        for process in list(self.running):
            with suppress(OSError):
                process.terminate()


@contextmanager
def _processes_ended() -> Iterator[_Processes]:  # all processes end with the block, also after SIGTERM
    started = _Processes()
    with sigterm_as_exit():
        try:
            yield started
        finally:
            started.end()


def _run(folder: Path, command: Sequence[str], jobs: int, started: _Processes) -> float:
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // jobs))
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"}
    start_time, log = time.monotonic(), folder / LOG
    if started.stopped:
        return 0.0
    lock = file_lock(folder / "train.lock", f"is training, or has left a training in {folder}", "end it")
    with lock as descriptor, os_errors("write", log), log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(descriptor,),  # it holds the lock for as long as it trains, also where this process is killed
        )
        started.add(process)
        try:
            code = process.wait()
        finally:
            process.terminate()  # nothing where it has ended
            process.wait()
            started.running.discard(process)
    if code and not started.stopped:
        raise DataError(f"training of {folder.name} ended with exit code {code}: {_last_line(log)}; see {log}")
    return time.monotonic() - start_time


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["its log is empty"])[-1][-300:]
