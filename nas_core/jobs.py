"""Jobs of submitit that compute items on other machines.

A job is a process on this machine (cluster ``local``) or on a Slurm cluster with a shared folder. It opens its data
once and appends each result to a JSON Lines file, so that the results of a lost job are kept.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import real_path
from nas_core.files.writing import make_folder, write_atomic
from nas_core.optional import require
from nas_core.options import config_from, read_texts

CLUSTERS = ("local", "slurm")
EXECUTORS = ("local", "submitit")
POLL_S = {"local": 0.1, "slurm": 2.0}
"""Seconds between checks of the jobs; submitit queries Slurm's accounting at most once a minute"""
CANCEL_S = 10.0
_OUTCOMES = re.compile(r"[0-9a-f]{32}\.jsonl")

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
    """Minutes after which a job is ended; its results are kept."""
    gpus: int = 0
    """GPUs of each job; default: one with device cuda, else none."""
    cpus: int = 1
    """Processor cores and torch threads of each job."""
    memory_gb: float | None = None
    """Main memory of each job; Slurm only; default: the cluster's."""
    partition: str | None = None
    """Slurm's partition; default: its own."""
    slurm: Mapping[str, str] = field(default_factory=dict)
    """Any other option of ``sbatch``, by its name without dashes, such as constraint."""

    def __post_init__(self) -> None:
        if self.cluster not in CLUSTERS:
            raise unknown_choice("cluster", self.cluster, CLUSTERS)
        for name, least in (("jobs", 1), ("per_job", 1), ("timeout_min", 1), ("gpus", 0), ("cpus", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} is {value!r}; expected a whole number of at least {least}")
        if self.memory_gb is not None and not self.memory_gb > 0:
            raise ConfigError(f"memory_gb is {self.memory_gb!r}; expected a number above 0")
        if self.cluster == "local" and (self.partition or self.slurm):
            raise ConfigError("partition and sbatch options apply to Slurm only; leave them out, or give cluster=slurm")


def jobs_config(executor: str, device: str, given: Mapping[str, Any]) -> JobsConfig | None:
    """Return the settings of jobs, or None to work in this process.

    Args:
        executor: one of :data:`EXECUTORS`.
        given: settings by name, also as texts.
    """
    if executor not in EXECUTORS:
        raise unknown_choice("executor", executor, EXECUTORS)
    if executor == "local":
        if given:
            raise ConfigError(f"job setting {next(iter(given))} is for executor submitit; give that, or leave it out")
        return None
    if "," in device:
        raise ConfigError(f"device {device} is several of this machine; jobs have one each: give cpu or cuda")
    gpus = 1 if device.startswith("cuda") else 0
    config = config_from(JobsConfig, {"gpus": gpus, **read_texts(JobsConfig, given)}, "job setting")
    index = device.partition(":")[2]
    if gpus and index and (not index.isdigit() or int(index) >= max(config.gpus, 1)):
        raise ConfigError(f"device {device}: a job counts its GPUs from 0, it has {config.gpus}; give device cuda")
    require("submitit", "executor submitit", "submitit")  # before a supernet is opened, which takes long
    return config


class JobPool:
    """Pool of submitit jobs that share a folder with this process."""

    def __init__(self, config: JobsConfig, folder: str | Path) -> None:
        self._submitit = require("submitit", "sharing work out to jobs", "submitit")
        self.config = config
        self.folder = real_path(folder)

    @functools.cached_property
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

    def map(
        self, opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any]
    ) -> Iterator[dict[str, Any] | Failure]:
        """Yield the result of each item in order, when its job has ended. No job outlives the iteration.

        The missing items of a lost job (killed, out of time) run again in another job. An item fails if its work raises
        an exception or two jobs are lost over it.

        Raises:
            ConfigError: the cluster cannot be reached.
            NasExtError: a job raised one or cannot be submitted.
        """
        make_folder(self.folder)
        for file in self.folder.glob("*.jsonl"):  # of a process that was killed: without them its jobs end
            if _OUTCOMES.fullmatch(file.name):
                file.unlink()
        size = min(self.config.per_job, -(-len(items) // self.config.jobs)) or 1
        parts = [list(items[start : start + size]) for start in range(0, len(items), size)]
        shares = [_Share(self, opener, dict(arguments), part) for part in parts]
        try:
            for share in shares:
                while len(share.outcomes) < len(share.items):
                    self._update(shares)
                yield from share.outcomes
        finally:
            for share in shares:
                share.cancel()
            with contextlib.suppress(OSError):  # logs of lost jobs stay in it
                self.folder.rmdir()

    def _update(self, shares: Sequence[_Share]) -> None:
        for share in shares:
            share.collect()
        waiting = [share for share in shares if not share.job and len(share.outcomes) < len(share.items)]
        running = sum(share.job is not None for share in shares)
        for share in waiting[: self.config.jobs - running]:
            share.submit()
        time.sleep(POLL_S[self.config.cluster])

    def start(self, *arguments: Any) -> Any:
        executor = self._executor
        try:
            with _silent() if self.config.cluster == "local" else contextlib.nullcontext():
                return executor.submit(work, *arguments)
        except Exception as error:  # whatever sbatch raises
            raise NasExtError(f"cannot submit a job to cluster {self.config.cluster}: {error}") from error


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Start processes without stderr and with SIGINT enabled inside the block.

    submitit cancels its watcher of a local job by SIGINT, and the watcher prints a traceback.
    """
    main = threading.current_thread() is threading.main_thread()
    ignored = main and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Share:
    def __init__(self, pool: JobPool, opener: Opener, arguments: dict[str, Any], items: list[Any]) -> None:
        self.pool, self.opener, self.arguments, self.items = pool, opener, arguments, items
        self.outcomes: list[dict[str, Any] | Failure] = []
        self.job: Any = None
        self.path = Path()
        self._losses = 0

    def submit(self) -> None:
        self.path = self.pool.folder / f"{uuid.uuid4().hex}.jsonl"
        write_atomic(self.path, "")
        missing = self.items[len(self.outcomes) :]
        self.job = self.pool.start(self.opener, self.arguments, missing, str(self.path))

    def collect(self) -> None:
        if self.job is None or not self.job.done():
            return
        job, self.job = self.job, None
        records = read_jsonl(self.path)
        self.path.unlink()
        log = f"{self.pool.folder.name}/{job.paths.stderr.name}"
        before, reason = len(self.outcomes), f"job {job.job_id} ended early ({job.state}), see {log}"
        for record in records:
            if "rejected" in record:
                self._tidy_up(job)
                raise NasExtError(record["rejected"])
            if "broken" in record:
                reason = f"job {job.job_id} could not begin: {record['broken']}"
            else:
                self.outcomes.append(Failure(record["failed"]) if "failed" in record else record["result"])
        if len(self.outcomes) == len(self.items):
            return self._tidy_up(job)
        self._losses = 1 if len(self.outcomes) > before else self._losses + 1
        if self._losses == 2:
            self.outcomes.append(Failure(f"two jobs were lost over it: {reason}"))
            self._losses = 0

    def cancel(self) -> None:
        if self.job is None:
            return
        self.path.unlink(missing_ok=True)
        self.job.cancel(check=False)
        deadline = time.monotonic() + CANCEL_S
        while not self.job.done() and time.monotonic() < deadline:
            time.sleep(POLL_S["local"])
        self._tidy_up(self.job)
        self.job = None

    def _tidy_up(self, job: Any) -> None:
        for file in self.pool.folder.glob(f"{job.job_id}_*"):
            file.unlink(missing_ok=True)


def work(opener: Opener, arguments: Mapping[str, Any], items: Sequence[Any], out: str) -> None:
    """Run a job and append each result to the file ``out`` until the file is removed. A requeued job continues."""
    from submitit.core.utils import UncompletedJobError

    path = Path(out)
    try:
        compute = opener(**arguments)
    except NasExtError as error:
        return append_jsonl(path, {"rejected": str(error)})
    except Exception as error:
        return append_jsonl(path, {"broken": Failure.of(error).reason})
    for item in items[len(read_jsonl(path)) :]:
        try:
            outcome: dict[str, Any] = {"result": dict(compute(item))}
        except NasExtError as error:
            outcome = {"rejected": str(error)}
        except UncompletedJobError:  # submitit's signal handler raises it when the time is up
            raise
        except Exception as error:
            outcome = {"failed": Failure.of(error).reason}
        if not path.exists():
            return None
        append_jsonl(path, outcome)
        if "rejected" in outcome:
            return None
    return None
