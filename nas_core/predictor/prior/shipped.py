"""The prior that comes with this package."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.prior.model import Prior

__all__ = ["FILE", "read_prior", "shipped_prior", "write_prior"]

FILE = Path(__file__).parent / "shipped" / "prior.safetensors"
_KIND = "prior"


@functools.cache
def shipped_prior() -> Prior:
    """What this package knows of networks; the header of :data:`FILE` names the benchmarks and their licences.

    Raises:
        DataError: the file is damaged.
    """
    return read_prior(FILE)[0]


def read_prior(path: str | Path) -> tuple[Prior, dict[str, Any]]:
    """A prior and the header of its file: ``benchmarks`` with ``name``, ``networks``, ``source`` and ``licence``.

    Raises:
        DataError: the file is missing, damaged, or something else.
    """
    header, tensors = read_artifact(path, _KIND)
    return Prior.from_tensors(tensors), header


def write_prior(path: str | Path, prior: Prior, benchmarks: Sequence[Mapping[str, Any]]) -> None:
    """Write a prior and what it learned from.

    Raises:
        ConfigError: the name does not end in .safetensors. NasExtError: it cannot be written.
    """
    write_artifact(path, _KIND, {"benchmarks": [dict(each) for each in benchmarks]}, prior.to_tensors())
