"""Results with the date and the command of their measurement, which the page of results shows."""

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
    """Return the command line of the benchmark in ``file`` with these arguments (by default the program's own).

    Paths lose their folders, which are specific to a machine: ``NAME=/data/subnet.pt`` becomes ``NAME=subnet.pt``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return shlex.join(["python", "-m", "benchmarks", PurePath(file).stem, *map(_shortened, arguments)])


def write_result(path: Path, content: Mapping[str, Any], run: str, adds: bool = False) -> None:
    """Write a result with ``measured``, today's date and the command ``run``, before everything else.

    Where a run ``adds`` to what earlier runs measured, their dates and commands stay in ``earlier``.
    """
    measured: dict[str, Any] = {"date": datetime.date.today().isoformat(), "command": run}
    before = read_json(path).get("measured", {}) if adds and path.exists() else {}
    previous = [{key: before[key] for key in ("date", "command")}] if before else []
    earlier = [*before.get("earlier", []), *previous]
    if earlier := [each for each in earlier if each["command"] != run]:
        measured["earlier"] = earlier
    write_json(path, {"measured": measured, **{key: value for key, value in content.items() if key != "measured"}})


def _shortened(argument: str) -> str:
    name, equals, value = argument.rpartition("=")
    short = PurePath(value).name if "/" in value or "\\" in value else value
    return f"{name}{equals}{short or value}"
