"""Result files with the date and command of their measurement."""

from __future__ import annotations

import datetime
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from nas_core.files.reading import read_json
from nas_core.files.writing import write_json


def command(file: str, argv: Sequence[str] | None = None) -> str:
    """Return the command line of a benchmark.

    Folders are removed from paths: ``NAME=/data/subnet.pt`` becomes ``NAME=subnet.pt``.

    Args:
        file: path of the benchmark's module.
        argv: arguments; default: those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return shlex.join(["python", "-m", "benchmarks", PurePath(file).stem, *map(_shorten, arguments)])


def write_result(path: Path, content: Mapping[str, Any], run: str, adds: bool = False) -> None:
    """Write a result, with today's date and the command ``run`` in ``measured``.

    Args:
        adds: keep dates and commands of earlier runs in ``earlier``.
    """
    measured: dict[str, Any] = {"date": datetime.date.today().isoformat(), "command": run}
    before = read_json(path).get("measured", {}) if adds and path.exists() else {}
    previous = [{key: before[key] for key in ("date", "command")}] if before else []
    earlier = [*before.get("earlier", []), *previous]
    if earlier := [entry for entry in earlier if entry["command"] != run]:
        measured["earlier"] = earlier
    write_json(path, {"measured": measured, **{key: value for key, value in content.items() if key != "measured"}})


def _shorten(argument: str) -> str:
    name, equals, value = argument.rpartition("=")
    short = PurePath(value).name if "/" in value or "\\" in value else value
    return f"{name}{equals}{short or value}"
