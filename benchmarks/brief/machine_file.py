"""The file of one machine: what it is, and how each benchmark ended there."""

from __future__ import annotations

import datetime
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nas_core import __version__
from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from nas_core.latency.machine import describe_machine

__all__ = ["DONE", "MachineFile", "default_name", "software"]

DONE = "done"
PACKAGES = ("torch", "numpy", "scipy", "fairseq-fixed", "timm", "nni", "optuna", "onnx", "onnxruntime", "lightgbm")
SAME = ("cpu", "cores", "platform")
"""What a file keeps of its machine."""


def software() -> str:
    """The versions that decide whether a figure has to be measured again."""
    return f"nas-ext {__version__}, torch {describe_machine('cpu', 1)['torch']}, Python {platform.python_version()}"


def default_name() -> str:
    """The name of this machine: its processor and its cores, as a file name."""
    machine = describe_machine("cpu", 1)
    plain = re.sub(r"\((r|tm)\)", "", str(machine["cpu"]).lower())
    return re.sub(r"[^a-z0-9]+", "-", f"{plain} {machine['cores']} cores").strip("-")


class MachineFile:
    """The results of one machine, written anew after each benchmark.

    Raises:
        DataError: the file is of another machine.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.machine = {name: value for name, value in describe_machine("cpu", 1).items() if name != "threads"}
        before: Mapping[str, Any] = read_json(path) if path.exists() else {"machine": self.machine, "benchmarks": {}}
        if other := [name for name in SAME if before["machine"].get(name) != self.machine[name]]:
            was = f"{before['machine'].get(other[0])}, this one has {self.machine[other[0]]}"
            raise DataError(f"{path.name} is of a machine whose {other[0]} is {was}; give this one another --name")
        self.entries: dict[str, dict[str, Any]] = dict(before["benchmarks"])

    def has(self, name: str, size: str) -> bool:
        """Whether a benchmark is done at this size by this software."""
        entry = self.entries.get(name, {})
        return (entry.get("status"), entry.get("size"), entry.get("software")) == (DONE, size, software())

    def keep(self, name: str, entry: Mapping[str, Any]) -> None:
        """Write how a benchmark ended."""
        today = datetime.date.today().isoformat()
        self.entries[name] = {"date": today, "software": software(), **entry}
        content = {
            "measured": {"date": today, "command": "make bench"},
            "machine": self.machine,
            "versions": _versions(),
            "benchmarks": {each: self.entries[each] for each in sorted(self.entries)},
        }
        write_json(self.path, content)


def _versions() -> dict[str, str]:
    found = {"nas-ext": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
