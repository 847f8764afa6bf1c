"""``nas-ext nni``: the tuner in NNI's experiments."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The tuner for NNI's experiment YAMLs.")


@app.command("register")
def register_command(
    remove: Annotated[bool, typer.Option("--remove", help="Remove it from NNI's list.")] = False,
) -> None:
    """Register the tuner with NNI as nas-ext, in this Python environment."""
    from nni_ext.hpo.register import register, registered_in, unregister

    name = unregister() if remove else register()
    typer.echo(f"{'removed' if remove else 'registered'}: {name} ({registered_in()})")


@app.command("meta")
def meta_command() -> None:
    """Print the path of the meta file, for 'nnictl algo register --meta'."""
    from nni_ext.hpo.register import META

    typer.echo(META)


@app.command("check")
def check_command(
    path: Annotated[Path, typer.Argument(help="An experiment YAML whose tuner is nas-ext.")],
) -> None:
    """Check the tuner and search space of an experiment, show its first sample, warn of misleading settings, and print
    the command that starts it. Code of the experiment is not run."""
    from nni_ext.hpo.check import check_experiment

    parameters, warnings = check_experiment(path)
    typer.echo("a sample, the architecture of the first trial (NNI's parameters by label):")
    for label, value in parameters.items():
        typer.echo(f"  {label}: {value}")
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    but = ", but see the warnings" if warnings else ""
    typer.echo(f"can be started{but}: python -m nni_ext.nnictl create --config {shlex.quote(str(path))} --port 8080")
