"""Parallel computation of items, such as architectures to evaluate, in submitit jobs.

A job is a process on this machine (cluster ``local``) or on a Slurm cluster that shares a folder with it. A job loads
its data once and computes several items.
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
"""Seconds between checks whether jobs have ended"""
CANCEL_S = 10.0

Opener = Callable[..., Callable[[Any], Mapping[str, Any]]]
"""Importable function that each job or worker calls once to load its data. It returns the function that computes the
result of an item."""


@dataclass(frozen=True)
class Failure:
    """Outcome of an item whose computation failed."""

    reason: str
    """Error message in one line"""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(" ".join(f"{type(error).__name__}: {error}".split()))


def open_or_raise(opener: Opener, arguments: Mapping[str, Any]) -> Callable[[Any], Mapping[str, Any]]:
    """Call ``opener`` in a job or worker; turn every exception into a NasExtError.

    Args:
        opener: function from ``arguments`` to the function that computes the result of an item.
    """
    try:
        return opener(**arguments)
    except NasExtError:
        raise
    except Exception as error:
        raise NasExtError(
            f"a worker process could not load its inputs, such as supernet and data ({Failure.of(error).reason}); fix"
            " the cause and start again"
        ) from error


@dataclass(frozen=True, kw_only=True)
class JobsConfig:
    """Settings of submitit jobs."""

    cluster: str = field(default="local", metadata={"choices": CLUSTERS})
    """``local``: processes on this machine; ``slurm``: jobs of the Slurm cluster to which this machine submits."""
    jobs: int = 2
    """Number of jobs that run at the same time."""
    per_job: int = 25
    """Maximum number of items in a job; each job loads its data again."""
    timeout_min: int = 60
    """Time limit of a job in minutes; a job that exceeds it is killed."""
    gpus: int = 0
    """Number of GPUs of each job; default: 1 with device cuda, otherwise 0."""
    cpus: int = 1
    """Number of processor cores and torch threads of each job."""
    memory_gb: float | None = None
    """Main memory of each job in GB, for Slurm only; default: the default of the cluster."""
    partition: str | None = None
    """Slurm partition; default: the default partition of the cluster."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Other options of ``sbatch``, by name without dashes, such as constraint."""

    def __post_init__(self) -> None:
        minimum = {"jobs": 1, "per_job": 1, "timeout_min": 1, "gpus": 0, "cpus": 1}
        ranges = {name: Range(number) for name, number in minimum.items()}
        check_fields(self, ranges={**ranges, "memory_gb": Range(0, exclude=(0,))})
        if self.cluster == "local" and (self.partition or self.slurm):
            raise ConfigError("partition and sbatch options apply to Slurm only; leave them out, or give cluster=slurm")


def jobs_config(executor: str, device: str, settings: Mapping[str, Any]) -> JobsConfig | None:
    """Return the validated settings of submitit jobs, or None if the executor is ``local`` (this process).

    Args:
        settings: values or texts by field of :class:`JobsConfig`.
    """
    if executor not in EXECUTORS:
        raise unknown_choice("executor", executor, EXECUTORS)
    if executor == "local":
        if settings:
            raise ConfigError(f"job setting {next(iter(settings))} needs executor submitit; give that, or remove it")
        return None
    if "," in device:
        raise ConfigError(f"device {device} names several devices, but each job uses one; give cpu or cuda")
    gpus = 1 if device.startswith("cuda") else 0
    config = config_from(JobsConfig, {"gpus": gpus, **settings}, "job setting")
    index = device.partition(":")[2]
    if gpus and index and (not index.isdigit() or int(index) >= max(config.gpus, 1)):
        raise ConfigError(f"device {device} does not exist in a job with gpus={config.gpus}; give device cuda")
    require("submitit", "executor submitit", "submitit")  # before a supernet is opened, which takes long
    return config


class JobPool:
    """Pool of submitit jobs that exchange files with this process in a shared folder."""

    def __init__(self, config: JobsConfig, folder: str | Path) -> None:
        self._submitit = require("submitit", "computing in jobs", "submitit")
        self.config = config
        self.folder = real_path(folder)

    def map(
        self, opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]
    ) -> Iterator[dict[str, Any] | Failure]:
        """Yield the result of each item, in order. Running jobs are cancelled when the iteration ends.

        Items of a killed job are computed again in two smaller jobs. An item is a :class:`Failure` if its computation
        raises an exception, or if its job is killed again with no other item in it.

        Args:
            opener: as in :func:`open_or_raise`, called once in each job.

        Raises:
            ConfigError: the cluster is not available.
            NasExtError: a computation raises it, or a job cannot be submitted or cannot load its data.
        """
        make_folder(self.folder)
        executor = self._executor()
        size = min(self.config.per_job, -(-len(items) // self.config.jobs)) or 1
        waiting = [range(len(items))[start : start + size] for start in range(0, len(items), size)]
        running: list[tuple[Any, range]] = []
        outcomes: dict[int, dict[str, Any] | Failure] = {}
        killed: set[int] = set()
        try:
            for index in range(len(items)):
                while index not in outcomes:
                    while waiting and len(running) < self.config.jobs:
                        batch = waiting.pop(0)
                        running.append((self._submit(executor, opener, arguments, [items[i] for i in batch]), batch))
                    time.sleep(POLL_S[self.config.cluster])
                    for job, batch in [(job, batch) for job, batch in running if job.done()]:
                        running.remove((job, batch))
                        if (results := self._results(job)) is not None:
                            outcomes |= zip(batch, results, strict=True)
                        elif len(batch) == 1 and batch[0] in killed:
                            log = f"{self.folder.name}/{job.paths.stderr.name}"
                            outcomes[batch[0]] = Failure(
                                f"two of its jobs were killed, the last {job.job_id}; see {log}"
                            )
                        else:
                            killed.update(batch)
                            half = (len(batch) + 1) // 2
                            waiting[:0] = filter(None, (batch[:half], batch[half:]))
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
            raise ConfigError(f"cluster {config.cluster} is not available ({error}); give cluster local") from None
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
            with _stderr_silenced() if self.config.cluster == "local" else contextlib.nullcontext():
                return executor.submit(work, opener, dict(arguments), items)
        except Exception as error:  # whatever sbatch raises
            raise NasExtError(f"cannot submit a job to cluster {self.config.cluster}: {error}") from error

    def _results(self, job: Any) -> list[dict[str, Any] | Failure] | None:
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
def _stderr_silenced() -> Iterator[None]:
    # submitit starts a process that prints a traceback when its job is cancelled
    sys.stderr.flush()
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


def work(
    opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]
) -> list[Mapping[str, Any] | Failure] | NasExtError:
    """Return the results of the items of a job, or the NasExtError that ends the whole computation."""
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
