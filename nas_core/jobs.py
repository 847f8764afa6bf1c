"""Work on other machines: items are shared out to jobs of submitit, results come back in order.

A job is a process of its own, on this machine (cluster ``local``) or on a Slurm cluster, which shares a folder with
this one. It opens what it works with once and then does one item after the other; each result is one JSON line in the
job's file, so that what was done is kept when a job is lost. (submitit itself hands functions and arguments to its jobs
as pickles in that folder; nothing that is kept is one.)
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
from nas_core.files import append_jsonl, make_folder, read_jsonl, real_path, write_atomic
from nas_core.optional import require
from nas_core.options import config_from, read_texts

CLUSTERS = ("local", "slurm")
EXECUTORS = ("local", "submitit")
POLL_S = {"local": 0.1, "slurm": 2.0}
"""Between two looks at the jobs; submitit itself asks Slurm's accounting at most once a minute."""
CANCEL_S = 10.0
"""How long cancelled jobs are waited for."""
_OUTCOMES = re.compile(r"[0-9a-f]{32}\.jsonl")
"""Files of jobs."""

Opener = Callable[..., Callable[[Any], Mapping[str, Any]]]
"""Called once in each job: plain arguments -> what gives the plain result of one plain item. A function of a module
that can be imported there, as the item's results are plain data: numbers, texts, lists and dictionaries of them."""


@dataclass(frozen=True)
class Failure:
    """An item without a result; the others go on."""

    reason: str
    """One line."""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        return cls(" ".join(f"{type(error).__name__}: {error}".split()))


@dataclass(frozen=True, kw_only=True)
class JobsConfig:
    """How work is shared out to jobs.

    Raises:
        ConfigError: a value out of range. UnknownChoiceError: another cluster.
    """

    cluster: str = field(default="local", metadata={"choices": CLUSTERS})
    """``local``: processes of this machine; ``slurm``: jobs of the Slurm cluster this machine belongs to."""
    jobs: int = 2
    """Jobs at a time."""
    per_job: int = 25
    """Items that one job does at most; each job opens what it works with anew."""
    timeout_min: int = 60
    """Minutes after which a job is ended; what it has done is kept."""
    gpus: int = 0
    """GPUs of each job; default: one with device cuda, else none."""
    cpus: int = 1
    """Processor cores of each job, and threads that torch computes with there."""
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
            raise ConfigError("partition and options of sbatch are for cluster slurm; leave them out, or name it")


def jobs_config(executor: str, device: str, given: Mapping[str, Any]) -> JobsConfig | None:
    """Return how work is shared out to jobs; None is work in this process.

    Args:
        executor: of :data:`EXECUTORS`.
        given: settings by name, texts of a command line among them; a job on a CUDA device has one GPU by default.

    Raises:
        UnknownChoiceError: no such executor or setting. ConfigError: settings that contradict each other or are out of
            range. MissingHostError: submitit is not installed.
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
    require("submitit", "executor submitit", "submitit")  # now, as a supernet takes long to open
    return config


class JobPool:
    """Jobs in a folder that they and this process share; it is made when there is work.

    Raises:
        MissingHostError: submitit is not installed.
    """

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
        """The result of each item, in order, as soon as the job it belongs to has ended.

        A job that ends too early (killed, out of time, its node lost) is followed by another one that does what is
        missing. An item during which two jobs were lost has failed; so has one whose work raised an exception. However
        the iteration ends, no job is left behind.

        Raises:
            ConfigError: the cluster is not to be reached from here.
            NasExtError: a job raised one, or it cannot be submitted; all others are cancelled.
        """
        make_folder(self.folder)
        for left in self.folder.glob("*.jsonl"):  # of a process that was killed: its jobs look for them, and end
            if _OUTCOMES.fullmatch(left.name):
                left.unlink()
        size = min(self.config.per_job, -(-len(items) // self.config.jobs)) or 1
        parts = [list(items[start : start + size]) for start in range(0, len(items), size)]
        shares = [_Share(self, opener, dict(arguments), part) for part in parts]
        try:
            for share in shares:
                while len(share.outcomes) < len(share.items):
                    self._look_after(shares)
                yield from share.outcomes
        finally:
            for share in shares:
                share.cancel()
            with contextlib.suppress(OSError):  # logs of lost jobs are kept in there
                self.folder.rmdir()

    def _look_after(self, shares: Sequence[_Share]) -> None:
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
        except Exception as error:  # whatever sbatch or this machine has against it
            raise NasExtError(f"cannot submit a job to cluster {self.config.cluster}: {error}") from error


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Processes started inside have no stderr: submitit's watcher of a local job shows a traceback when cancelled. And
    they can be interrupted, which is how it is cancelled, even where this process ignores that, as one does that was
    started in the background."""
    here = threading.current_thread() is threading.main_thread()
    ignored = here and signal.getsignal(signal.SIGINT) == signal.SIG_IGN
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
    """Items that one job works on, and those that follow it if it is lost."""

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
        """Take over what the job did, once it has ended."""
        if self.job is None or not self.job.done():
            return
        job, self.job = self.job, None
        records = read_jsonl(self.path)
        self.path.unlink()
        log = f"{self.pool.folder.name}/{job.paths.stderr.name}"
        before, reason = len(self.outcomes), f"job {job.job_id} ended early ({job.state}), see {log}"
        for record in records:
            if "refused" in record:
                self._tidy_up(job)
                raise NasExtError(record["refused"])
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
    """What runs in a job: each item's outcome is added to the file ``out``, until it is gone.

    A job that Slurm ran before and put back into its queue goes on where it was.
    """
    from submitit.core.utils import UncompletedJobError

    path = Path(out)
    try:
        each = opener(**arguments)
    except NasExtError as error:
        return append_jsonl(path, {"refused": str(error)})
    except Exception as error:
        return append_jsonl(path, {"broken": Failure.of(error).reason})
    for item in items[len(read_jsonl(path)) :]:
        try:
            outcome: dict[str, Any] = {"result": dict(each(item))}
        except NasExtError as error:
            outcome = {"refused": str(error)}
        except UncompletedJobError:  # raised by submitit's signal handler wherever the job is when its time is up
            raise
        except Exception as error:
            outcome = {"failed": Failure.of(error).reason}
        if not path.exists():
            return None
        append_jsonl(path, outcome)
        if "refused" in outcome:
            return None
    return None
