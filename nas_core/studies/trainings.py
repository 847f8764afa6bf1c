"""Training processes started by studies."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nas_core.errors import ConfigError, DataError
from nas_core.files.reading import read_json
from nas_core.files.writing import os_errors, write_json
from nas_core.locks import file_lock
from nas_core.progress import counted
from nas_core.signals import sigterm_as_exit
from nas_core.supernet.host import Supernet

Key = TypeVar("Key")
LOG = "train.log"
"""Log file in the folder of a training."""
_LOOK_S = 1.0


@dataclass(frozen=True)
class Training:
    """Command that trains a network."""

    command: Sequence[str]
    folder: Path
    """Existing folder for the log and checkpoints."""
    enough: Callable[[], bool] | None = None
    """Function called once per second during training; True stops the training."""


def train_all(trainings: Mapping[Key, Training], jobs: int, finished: Callable[[Key, float], None], noun: str) -> None:
    """Run trainings, ``jobs`` at a time; if one fails, stop all.

    Args:
        finished: function called with key and seconds of each finished training.
        noun: plural noun for the progress bar.
    """
    with _ending() as started, ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {pool.submit(_run, training, jobs, started): key for key, training in trainings.items()}
            with counted("training", len(waiting), noun.removesuffix("s")) as advance:
                for done in as_completed(waiting):
                    finished(waiting[done], done.result())
                    advance(1)
        except BaseException:
            started.end()  # before the pool waits for them
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Processes:
    def __init__(self) -> None:
        self.running: set[subprocess.Popen[bytes]] = set()
        self.ended = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        self.running.add(process)
        if self.ended:  # while it was started
            process.terminate()

    def end(self) -> None:
        self.ended = True
        for process in list(self.running):
            with suppress(OSError):
                process.terminate()


@contextmanager
def _ending() -> Iterator[_Processes]:  # all processes end with the block, also after SIGTERM
    started = _Processes()
    with sigterm_as_exit():
        try:
            yield started
        finally:
            started.end()


def _run(training: Training, jobs: int, started: _Processes) -> float:
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // jobs))
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"}
    folder, begin = training.folder, time.monotonic()
    log = folder / LOG
    if started.ended:
        return 0.0
    lock = file_lock(folder / "train.lock", f"is training, or has left a training in {folder}", "end it")
    with lock as descriptor, os_errors("write", log), log.open("ab") as output:
        process = subprocess.Popen(
            training.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(descriptor,),  # it holds the lock for as long as it trains, also where this process is killed
        )
        started.add(process)
        try:
            code = _waited_for(process, training.enough)
        finally:
            process.terminate()  # nothing where it has ended
            process.wait()
            started.running.discard(process)
    if code and not started.ended:
        raise DataError(f"training of {folder.name} ended with exit code {code}: {_last_line(log)}; see {log}")
    return time.monotonic() - begin


def _waited_for(process: subprocess.Popen[bytes], enough: Callable[[], bool] | None) -> int:
    if enough is None:
        return process.wait()
    while True:
        try:
            return process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if enough():
                return 0


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line]
    return (errors or lines or ["its log is empty"])[-1][-300:]


def train_missing(
    file: Path,
    noun: str,
    settings: Mapping[str, Any],
    trainer: Supernet,
    missing: Sequence[Key],
    training_of: Callable[[Key], Training],
    jobs: int,
    finished: Callable[[Key, float], None],
) -> None:
    """Run missing trainings; check that settings equal those of earlier trainings.

    Args:
        file: JSON file for the settings.
        noun: plural noun for the progress bar and messages.
        training_of: function that returns the training for a key.
        finished: as for :func:`train_all`.

    Raises:
        ConfigError: earlier trainings have other settings.
    """
    if missing:  # otherwise the data may be gone
        settings = {**settings, "data": dict(trainer.training_data())}
    earlier = read_json(file) if file.exists() and any(file.parent.glob(f"**/{LOG}")) else {}
    for name, value in settings.items():
        if name in earlier and earlier[name] != value and name != "checkpoint":
            detail = "" if name == "settings_of" else f" ({name}: {json.dumps(earlier[name])}, now {json.dumps(value)})"
            raise ConfigError(
                f"{file.parent} contains {noun} with other settings{detail}; give the same first checkpoint and the"
                " same settings, or another folder"
            )
    if missing:
        trainings = {key: training_of(key) for key in missing}
        write_json(file, settings)
        train_all(trainings, jobs, finished, noun)
