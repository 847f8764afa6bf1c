"""``nas-ext lab user-dir``: print the folder for fairseq's ``--user-dir``."""

from __future__ import annotations

import importlib.util

import typer

from nas_core.errors import MissingHostError


def user_dir() -> str:
    """Return the path of the package ``fairseq_ext`` without importing it."""
    spec = importlib.util.find_spec("fairseq_ext")
    if spec is None or spec.origin is None or not spec.submodule_search_locations:
        raise MissingHostError(
            "the package fairseq_ext is not installed; run make setup, or pip install --no-build-isolation -e"
            " '.[fairseq]', in a checkout of nas-ext"
        )
    return spec.submodule_search_locations[0]


def command() -> None:
    """Print the folder for fairseq's --user-dir.

    fairseq needs it if nas-ext was not installed by pip, or to train its own models on the last batch of a dataset too:
    fairseq-train DATA --user-dir "$(nas-ext lab user-dir)" --arch mos_transformer ...
    """
    typer.echo(user_dir())
