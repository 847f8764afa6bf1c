"""Commands of ``nas-ext nni``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Use search strategies as a tuner in NNI experiments."
)


@app.command("register")
def register_command() -> None:
    """Register the tuner nas-ext with NNI, in this Python environment; undo it by 'nnictl algo unregister'."""
    from nni_ext.hpo.register import register

    typer.echo(f"registered: {register()}")


@app.command("meta")
def meta_command() -> None:
    """Print the path of the tuner's meta file, for 'nnictl algo register --meta'."""
    from nni_ext.hpo.register import META

    typer.echo(META)


@app.command("check")
def check_command(
    path: Annotated[Path, typer.Argument(help="Experiment YAML of NNI with the tuner nas-ext.")],
) -> None:
    """Check the tuner and search space of an experiment, without running its trials.

    Print the parameters of the first trial, warnings about misleading settings, and the command that starts it.
    """
    from nni_ext.hpo.check import check_experiment

    parameters, warnings = check_experiment(path)
    typer.echo("parameters of the first trial, by NNI's labels:")
    for label, value in parameters.items():
        typer.echo(f"  {label}: {value}")
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    note = ", but see the warnings" if warnings else ""
    typer.echo(f"can be started{note}: python -m nni_ext.nnictl create --config {shlex.quote(str(path))} --port 8080")
