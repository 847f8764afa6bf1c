"""The options by which a command shares its work out to jobs, the same for all that can."""

from __future__ import annotations

from typing import Annotated

import typer

from nas_core.errors import ConfigError, unknown_choice
from nas_core.jobs import CLUSTERS, JobsConfig
from nas_core.optional import require

__all__ = [
    "EXECUTORS",
    "Cluster",
    "Cpus",
    "Executor",
    "Gpus",
    "Jobs",
    "MemoryGb",
    "Partition",
    "PerJob",
    "Slurm",
    "TimeoutMin",
    "jobs_config",
]

EXECUTORS = ("local", "submitit")

# Types of options, for the signatures of commands.
Executor = Annotated[
    str, typer.Option(help="local: in this process; submitit: in jobs, each of which opens the model anew.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help=f"submitit: {' or '.join(CLUSTERS)}; local, processes of this machine, is the default."),
]
Jobs = Annotated[int | None, typer.Option(help="submitit: jobs at a time; default 2.")]
PerJob = Annotated[int | None, typer.Option(help="submitit: architectures of a job at most; default 25.")]
TimeoutMin = Annotated[int | None, typer.Option(help="submitit: minutes a job may take; default 60.")]
Gpus = Annotated[int | None, typer.Option(help="submitit: GPUs of a job; default 1 with --device cuda, otherwise 0.")]
Cpus = Annotated[int | None, typer.Option(help="submitit: processor cores, and torch threads, of a job; default 1.")]
MemoryGb = Annotated[float | None, typer.Option(help="Slurm: main memory of a job.")]
Partition = Annotated[str | None, typer.Option(help="Slurm: partition.")]
Slurm = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Slurm: any other option of sbatch; may be repeated.")
]


def jobs_config(
    executor: str, device: str, slurm: list[str] | None = None, **given: str | float | None
) -> JobsConfig | None:
    """What the options ask for; None is work in this process.

    Args:
        given: fields of :class:`JobsConfig`; None is the default.

    Raises:
        UnknownChoiceError: another executor. ConfigError: options that contradict each other or are out of range.
        MissingHostError: submitit is not installed.
    """
    if executor not in EXECUTORS:
        raise unknown_choice("executor", executor, EXECUTORS)
    chosen = {name: value for name, value in given.items() if value is not None}
    if executor == "local":
        if chosen or slurm:
            name = next(iter(chosen), "slurm").replace("_", "-")
            raise ConfigError(f"--{name} is for --executor submitit; give that as well, or leave it out")
        return None
    options = dict(option.partition("=")[::2] for option in slurm or ())
    if "" in options:
        raise ConfigError(f"--slurm {slurm}: expected KEY=VALUE, as in --slurm constraint=a100")
    gpus = 1 if device.startswith("cuda") else 0
    config = JobsConfig(**{"gpus": gpus, "slurm": options, **chosen})  # type: ignore[arg-type]
    require("submitit", "--executor submitit", "submitit")  # now, as a supernet takes long to open
    return config
