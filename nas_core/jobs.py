"""Jobs of submitit that compute items on other machines.

A job is a process on this machine (cluster ``local``) or on a Slurm cluster with a shared folder. It opens its data
once and computes several items.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.files.reading import real_path
from nas_core.files.writing import make_folder
from nas_core.optional import require
from nas_core.options import config_from

CLUSTERS = ("local", "slurm")
EXECUTORS = ("local", "submitit")
POLL_S = {"local": 0.1, "slurm": 2.0}
"""Seconds between checks of the jobs; submitit queries Slurm's accounting at most once a minute"""
CANCEL_S = 10.0

Opener = Callable[..., Callable[[Any], Mapping[str, Any]]]
"""Importable function, called once in each process with plain arguments; it returns the function from an item to its
result"""


@dataclass(frozen=True)
class Failure:
    """An item without a result."""

    reason: str
    """One line"""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(" ".join(f"{type(error).__name__}: {error}".split()))


def open_or_raise(opener: Opener, arguments: Mapping[str, Any]) -> Callable[[Any], Mapping[str, Any]]:
    """Call the opener in the process that computes; re-raise any exception as a NasExtError."""
    try:
        return opener(**arguments)
    except NasExtError:
        raise
    except Exception as error:
        raise NasExtError(f"a worker process could not open its data: {Failure.of(error).reason}") from error


@dataclass(frozen=True, kw_only=True)
class JobsConfig:
    """Settings of jobs."""

    cluster: str = field(default="local", metadata={"choices": CLUSTERS})
    """``local``: processes of this machine; ``slurm``: jobs of the Slurm cluster of this machine."""
    jobs: int = 2
    """Jobs at a time."""
    per_job: int = 25
    """Largest number of items of a job; each job opens its data anew."""
    timeout_min: int = 60
    """Minutes after which a job is ended and counts as lost."""
    gpus: int = 0
    """GPUs of each job; default: one with device cuda, else none."""
    cpus: int = 1
    """Processor cores and torch threads of each job."""
    memory_gb: float | None = None
    """Main memory of each job; Slurm only; default: the cluster's."""
    partition: str | None = None
    """Slurm's partition; default: that of the cluster."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Any other option of ``sbatch``, by its name without dashes, such as constraint."""

    def __post_init__(self) -> None:
        least = {"jobs": 1, "per_job": 1, "timeout_min": 1, "gpus": 0, "cpus": 1}
        ranges = {name: Range(number) for name, number in least.items()}
        check_fields(self, ranges={**ranges, "memory_gb": Range(0, without=(0,))})
        if self.cluster == "local" and (self.partition or self.slurm):
            raise ConfigError("partition and sbatch options apply to Slurm only; leave them out, or give cluster=slurm")


def jobs_config(executor: str, device: str, settings: Mapping[str, Any]) -> JobsConfig | None:
    """Return the settings of jobs, or None to work in this process.

    Args:
        executor: one of :data:`EXECUTORS`.
        settings: settings of the jobs by name, also as texts.
    """
    if executor not in EXECUTORS:
        raise unknown_choice("executor", executor, EXECUTORS)
    if executor == "local":
        if settings:
            raise ConfigError(f"job setting {next(iter(settings))} needs executor submitit; give that, or leave it out")
        return None
    if "," in device:
        raise ConfigError(f"device {device} names several devices; each job uses one: give cpu or cuda")
    gpus = 1 if device.startswith("cuda") else 0
    config = config_from(JobsConfig, {"gpus": gpus, **settings}, "job setting")
    index = device.partition(":")[2]
    if gpus and index and (not index.isdigit() or int(index) >= max(config.gpus, 1)):
        raise ConfigError(f"device {device}: a job has {config.gpus} GPUs, counted from 0; give device cuda")
    require("submitit", "executor submitit", "submitit")  # before a supernet is opened, which takes long
    return config


class JobPool:
    """Pool of submitit jobs that share a folder with this process."""

    def __init__(self, config: JobsConfig, folder: str | Path) -> None:
        self._submitit = require("submitit", "sharing work out to jobs", "submitit")
        self.config = config
        self.folder = real_path(folder)

    def map(
        self, opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]
    ) -> Iterator[dict[str, Any] | Failure]:
        """Yield the result of each item in order, when its job has ended. No job outlives the iteration.

        The items of a lost job (killed, out of time) run again in two jobs. An item fails if its work raises an
        exception, or if a job is lost in which it was alone.

        Raises:
            ConfigError: the cluster cannot be reached.
            NasExtError: a job raised one, cannot be submitted or cannot open its data.
        """
        make_folder(self.folder)
        executor = self._executor()
        size = min(self.config.per_job, -(-len(items) // self.config.jobs)) or 1
        waiting = [range(len(items))[start : start + size] for start in range(0, len(items), size)]
        running: list[tuple[Any, range]] = []
        outcomes: dict[int, dict[str, Any] | Failure] = {}
        lost_once: set[int] = set()
        try:
            for index in range(len(items)):
                while index not in outcomes:
                    while waiting and len(running) < self.config.jobs:
                        part = waiting.pop(0)
                        running.append((self._submit(executor, opener, arguments, [items[i] for i in part]), part))
                    time.sleep(POLL_S[self.config.cluster])
                    for job, part in [(job, part) for job, part in running if job.done()]:
                        running.remove((job, part))
                        if (results := self._results(job)) is not None:
                            outcomes |= zip(part, results, strict=True)
                        elif len(part) == 1 and part[0] in lost_once:
                            log = f"{self.folder.name}/{job.paths.stderr.name}"
                            outcomes[part[0]] = Failure(f"two jobs were lost over it: job {job.job_id}, see {log}")
                        else:
                            lost_once.update(part)
                            middle = (len(part) + 1) // 2
                            waiting[:0] = filter(None, (part[:middle], part[middle:]))
                yield outcomes.pop(index)
        finally:
            for job, _ in running:
                job.cancel(check=False)
            deadline = time.monotonic() + CANCEL_S
            for job, _ in running:
                while not job.done() and time.monotonic() < deadline:
                    time.sleep(POLL_S["local"])
                self._remove_files(job)
            with contextlib.suppress(OSError):  # logs of lost jobs stay in it
                self.folder.rmdir()

    def _executor(self) -> Any:
        config = self.config
        try:
            executor = self._submitit.AutoExecutor(folder=self.folder, cluster=config.cluster)
        except RuntimeError as error:
            raise ConfigError(f"cluster {config.cluster}: {error} Give cluster local otherwise") from None
        slurm = {"partition": config.partition, "additional_parameters": dict(config.slurm)}
        executor.update_parameters(
            name="nas-ext",
            timeout_min=config.timeout_min,
            gpus_per_node=config.gpus,
            cpus_per_task=config.cpus,
            mem_gb=config.memory_gb,
            **({f"slurm_{name}": value for name, value in slurm.items()} if config.cluster == "slurm" else {}),
        )
        return executor

    def _submit(self, executor: Any, opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]) -> Any:
        try:
            with _silent() if self.config.cluster == "local" else contextlib.nullcontext():
                return executor.submit(work, opener, dict(arguments), items)
        except Exception as error:  # whatever sbatch raises
            raise NasExtError(f"cannot submit a job to cluster {self.config.cluster}: {error}") from error

    def _results(self, job: Any) -> list[dict[str, Any] | Failure] | None:
        """Return the results of a job that has ended; None if it was lost."""
        if self.config.cluster == "local" and not job.paths.result_pickle.exists():
            return None  # result() would wait for a slow shared folder
        try:
            results = job.result()
        except Exception:  # submitit's, or of unpickling a damaged file
            return None
        self._remove_files(job)
        if isinstance(results, NasExtError):
            raise results
        return list(results)

    def _remove_files(self, job: Any) -> None:
        for file in self.folder.glob(f"{job.job_id}_*"):
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Start processes without stderr inside the block: submitit's watcher of a cancelled job prints a traceback."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def work(
    opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]
) -> list[Mapping[str, Any] | Failure] | NasExtError:
    """Compute the items of a job; return the error that ends the whole computation, if there is one."""
    from submitit.core.utils import UncompletedJobError

    outcomes: list[Mapping[str, Any] | Failure] = []
    try:
        compute = open_or_raise(opener, arguments)
        for item in items:
            try:
                outcomes.append(dict(compute(item)))
            except (NasExtError, UncompletedJobError):  # submitit's signal handler raises the latter when time is up
                raise
            except Exception as error:
                outcomes.append(Failure.of(error))
    except NasExtError as error:
        return error
    return outcomes
