"""Standalone networks: what was trained before is read, what is missing is trained by the host."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from tqdm import tqdm

from nas_core.errors import ArchitectureError, ConfigError, DataError, NasExtError
from nas_core.files import append_jsonl, make_folder, os_errors, read_json, read_jsonl, write_json
from nas_core.locks import only_process
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import StandaloneTraining

__all__ = ["RESULTS", "StandaloneRun", "read_runs", "train_standalone"]

RESULTS = "standalone.jsonl"
"""The file of records in a study's folder."""
_LOG = "train.log"
"""The file in a network's folder that its training writes to from its start."""


@dataclass(frozen=True)
class StandaloneRun:
    """A network that was trained from scratch."""

    architecture: Architecture
    metrics: Mapping[str, float]
    examples: str = ""
    """What it was evaluated on, as :meth:`nas_core.supernet.StandaloneTraining.examples_key`; empty: nobody said."""
    seconds: float | None = None
    """How long its training took."""


def read_runs(path: Path, space: SearchSpace) -> list[StandaloneRun]:
    """Results of standalone networks, one JSON object a line: ``architecture``, and ``metrics`` by name.

    Raises:
        DataError: a record has no architecture of the space, no metrics (its training has not ended), or the
            architecture of an earlier one; or a metric is no finite number (its training has diverged).
    """
    found: dict[Architecture, int] = {}
    runs = []
    for number, record in enumerate(read_jsonl(path), start=1):
        where = f"{path}, record {number}"
        genes, metrics = record.get("architecture", record.get("genes")), record.get("metrics")
        if not isinstance(genes, dict):
            raise DataError(f"{where}: no field 'architecture' with genes; it has {', '.join(map(repr, record))}")
        try:
            nested = isinstance(genes.get("genes"), dict)
            architecture = space.validate(Architecture.from_json(genes) if nested else Architecture(genes))
        except (ArchitectureError, TypeError, ValueError) as error:
            raise DataError(f"{where} does not belong to the supernet: {error}") from None
        if not isinstance(metrics, dict) or not metrics or not all(map(_is_number, metrics.values())):
            raise DataError(f"{where} has no metrics: its training has not ended; finish it, or take the record out")
        if bad := _diverged(metrics):
            raise DataError(f"{where}: {bad}, so that the training has diverged; train it anew, or take the record out")
        if architecture in found:
            raise DataError(f"{where} is of the same architecture as record {found[architecture]}; keep one of them")
        found[architecture] = number
        seconds = record.get("seconds")
        runs.append(StandaloneRun(architecture, dict(metrics), str(record.get("examples") or ""), seconds))
    if not runs:
        raise DataError(f"{path} holds no records; expected one JSON object a line with an architecture and metrics")
    return runs


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _diverged(metrics: Mapping[str, float]) -> str:
    """The first metric that is not finite, in words; empty if all are."""
    return next((f"{name} is {value}" for name, value in metrics.items() if not math.isfinite(value)), "")


def train_standalone(
    trainer: StandaloneTraining,
    checkpoint: Path,
    space: SearchSpace,
    architectures: Sequence[Architecture],
    folder: Path,
    changes: Mapping[str, str],
    jobs: int = 1,
) -> list[StandaloneRun]:
    """Train what the folder does not hold yet; all runs of the architectures, in their order.

    Each network has a folder of its own in ``standalone/`` with the log of its training, and a record in
    ``standalone.jsonl`` once it is trained and evaluated. Called again, finished runs are read, and the others go on
    from what their trainer has kept.

    Args:
        trainer: the supernet by whose settings they are trained, which lies at ``checkpoint``.
        changes: settings that are others than the supernet's.
        jobs: how many are trained at the same time.

    Raises:
        ConfigError: the folder holds runs of other settings, or one of its networks is still being trained by a study
            that was killed. DataError: a training failed.
    """
    results = folder / RESULTS
    with only_process(folder / "standalone.lock", f"is training into {folder}", "give another --out"):
        before = {run.architecture: run for run in read_runs(results, space)} if results.exists() else {}
        missing = [architecture for architecture in dict.fromkeys(architectures) if architecture not in before]
        settled, settings = folder / "standalone.json", _settings(checkpoint, changes)
        if before or any(folder.glob(f"standalone/*/{_LOG}")):  # else, what is noted has trained nothing
            _check_settings(settled, settings)
        commands = {}
        for architecture in missing:
            own = folder / "standalone" / architecture.key
            make_folder(own)
            commands[architecture] = own, trainer.standalone_command(architecture, own.resolve(), changes)
        if missing:  # their settings are known to the trainer now
            write_json(settled, settings)
        with _ending() as started, ThreadPoolExecutor(jobs) as pool:
            try:
                waiting = {
                    pool.submit(_run, command, own, jobs, started): architecture
                    for architecture, (own, command) in commands.items()
                }
                for done in tqdm(as_completed(waiting), "training", len(waiting), unit="network", disable=None):
                    run = _evaluated(trainer, waiting[done], folder, done.result())
                    append_jsonl(results, _record(run))
                    before[run.architecture] = run
            except BaseException:
                started.end()  # before the pool waits for them
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [before[architecture] for architecture in dict.fromkeys(architectures)]


class _Processes:
    """Trainings that run now, so that none goes on alone."""

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
def _ending() -> Iterator[_Processes]:
    """What is started in the block is ended with it, also when this process is asked to end (SIGTERM)."""
    started = _Processes()
    ours = threading.current_thread() is threading.main_thread()  # signals can be handled there alone
    before = signal.signal(signal.SIGTERM, _leave) if ours else None
    try:
        yield started
    finally:
        started.end()
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _run(command: Sequence[str], folder: Path, jobs: int, started: _Processes) -> float:
    """Run one training to its end; the seconds it took."""
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // jobs))
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1"}
    log, begin = folder / _LOG, time.monotonic()
    if started.ended:
        return 0.0
    lock = only_process(folder / "train.lock", f"is training, or has left a training in {folder}", "end it")
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
        code = process.wait()
        started.running.discard(process)
    if code and not started.ended:
        raise DataError(
            f"standalone training of {folder.name} ended with exit code {code}: {_last_line(log)}; see {log}"
        )
    return time.monotonic() - begin


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    said = [line for line in lines if "rror" in line]
    return (said or lines or ["it said nothing"])[-1][-300:]


def _evaluated(trainer: StandaloneTraining, architecture: Architecture, folder: Path, seconds: float) -> StandaloneRun:
    own = folder / "standalone" / architecture.key
    try:
        metrics, examples = trainer.evaluate_standalone(own)
    except NasExtError as error:
        raise DataError(f"standalone training in {own} has left no network that can be evaluated: {error}") from None
    if bad := _diverged(metrics):
        raise DataError(
            f"standalone training in {own} has diverged: {bad}; give other settings with --train, and another --out"
        )
    return StandaloneRun(architecture, metrics, examples, round(seconds, 2))


def _record(run: StandaloneRun) -> dict[str, Any]:
    return {
        "architecture": run.architecture.to_dict(),
        "metrics": dict(run.metrics),
        "examples": run.examples,
        "seconds": run.seconds,
    }


def _settings(checkpoint: Path, changes: Mapping[str, str]) -> dict[str, Any]:
    """By what the networks of a folder are trained."""
    with os_errors("read", checkpoint), checkpoint.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"settings_of": digest, "changes": dict(changes)}


def _check_settings(path: Path, wanted: Mapping[str, Any]) -> None:
    """Check that the networks of a folder were trained by these settings, where they are noted.

    Raises:
        ConfigError: they were not.
    """
    if path.exists() and (found := read_json(path)) != wanted:
        said = json.dumps(found.get("changes")) if isinstance(found, dict) else "something else"
        raise ConfigError(
            f"{path.parent} holds standalone runs of other settings (train: {said}); give the same checkpoint first"
            " and the same settings, or another folder"
        )
