"""``nas-ext lab user-dir``: the folder for fairseq's ``--user-dir``."""

from __future__ import annotations

import importlib.util

import typer

from nas_core.errors import MissingHostError


def user_dir() -> str:
    """Return the installed ``fairseq_ext`` folder without importing it."""
    spec = importlib.util.find_spec("fairseq_ext")
    if spec is None or spec.origin is None or not spec.submodule_search_locations:
        raise MissingHostError(
            "the folder fairseq_ext is not part of this installation: install nas-ext again, from a checkout with "
            "make setup or with pip install --no-build-isolation -e '.[fairseq]'"
        )
    return spec.submodule_search_locations[0]


def command() -> None:
    """Print the folder for fairseq's --user-dir.

    fairseq needs it if nas-ext was not installed by pip, or for its own models to see every sentence:
    fairseq-train DATA --user-dir "$(nas-ext lab user-dir)" --arch mos_transformer ...
    """
    typer.echo(user_dir())
