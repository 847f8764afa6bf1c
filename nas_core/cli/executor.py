"""The options by which a command shares its work out to jobs, the same for all that can."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from nas_core.cli.options import parameters_of
from nas_core.errors import ConfigError, unknown_choice
from nas_core.jobs import JobsConfig
from nas_core.optional import require
from nas_core.options import flag_of, options_of

__all__ = ["EXECUTORS", "Executor", "jobs_config", "jobs_parameters"]

EXECUTORS = ("local", "submitit")

Executor = Annotated[
    str, typer.Option(help="local: in this process; submitit: in jobs, each of which opens the model anew.")
]


def jobs_parameters() -> list[inspect.Parameter]:
    """The options of :class:`JobsConfig`, for :func:`~nas_core.cli.options.with_options`."""
    return parameters_of({option.name: [("submitit", option)] for option in options_of(JobsConfig)})


def jobs_config(executor: str, device: str, slurm: list[str] | None = None, **given: Any) -> JobsConfig | None:
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
            flag = flag_of(next(iter(chosen), "slurm"))
            raise ConfigError(f"{flag} is for --executor submitit; give that as well, or leave it out")
        return None
    options = dict(option.partition("=")[::2] for option in slurm or ())
    if "" in options:
        raise ConfigError(f"--slurm {slurm}: expected KEY=VALUE, as in --slurm constraint=a100")
    if "," in device:
        raise ConfigError(f"--device {device} is several of this machine; jobs have one each: give cpu or cuda")
    gpus = 1 if device.startswith("cuda") else 0
    config = JobsConfig(**{"gpus": gpus, "slurm": options, **chosen})
    index = device.partition(":")[2]
    if gpus and index and (not index.isdigit() or int(index) >= max(config.gpus, 1)):
        raise ConfigError(f"--device {device}: a job counts its GPUs from 0, it has {config.gpus}; give --device cuda")
    require("submitit", "--executor submitit", "submitit")  # now, as a supernet takes long to open
    return config
