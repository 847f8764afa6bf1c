"""The measured results, and what others published, as the page reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nas_core.files import read_json

__all__ = ["FOLDER", "Results", "middle_of"]

FOLDER = Path(__file__).parents[1] / "results"
PUBLISHED = Path(__file__).with_name("published.json")
"""Figures of others, each with its source."""


class Results:
    """The JSON files of a folder by name, read when they are asked for; ``asked`` are those that were."""

    def __init__(self, folder: Path = FOLDER, published: Path = PUBLISHED) -> None:
        self.folder = folder
        self.asked: set[str] = set()
        self._read: dict[str, Any] = {}
        self._published = read_json(published)

    @property
    def names(self) -> list[str]:
        return sorted(file.stem for file in self.folder.glob("*.json"))

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        if name not in self._read:
            self._read[name] = read_json(self.folder / f"{name}.json")
        return self._read[name]

    def of_gpus(self) -> dict[str, Any]:
        """The results of the folder ``cuda`` by name."""
        return self._inside("cuda")

    def of_machines(self) -> dict[str, Any]:
        """What ``make bench`` wrote, by the name of the machine."""
        return self._inside("machines")

    def _inside(self, folder: str) -> dict[str, Any]:
        return {file.stem: read_json(file) for file in sorted((self.folder / folder).glob("*.json"))}

    def rows(self, name: str, **same: Any) -> list[Mapping[str, Any]]:
        """The rows of a result whose fields have these values, in the order of the file."""
        return [row for row in self[name]["rows"] if all(row.get(key) == value for key, value in same.items())]

    def row(self, name: str, **same: Any) -> Mapping[str, Any]:
        """The only row of a result whose fields have these values.

        Raises:
            LookupError: there is none, or several.
        """
        found = self.rows(name, **same)
        if len(found) != 1:
            raise LookupError(f"{name}.json has {len(found)} rows with {same}; expected one")
        return found[0]

    def published(self, name: str) -> Any:
        """A figure that others published."""
        return self._published[name]["value"]

    def commands(self, name: str) -> Sequence[str]:
        """How a result was measured, the first command first."""
        measured = self[name]["measured"]
        return [each["command"] for each in (*measured.get("earlier", ()), measured)]

    def date(self, name: str) -> str:
        """When the last of a result was measured."""
        return str(self[name]["measured"]["date"])

    def machines(self, name: str) -> list[Mapping[str, Any]]:
        """Where a result was measured; several where its parts differ."""
        content = self[name]
        parts = [content, *(part for part in content.values() if isinstance(part, dict))]
        found = [part["machine"] for part in parts if "machine" in part]
        return [machine for place, machine in enumerate(found) if machine not in found[:place]]


def middle_of(timing: Mapping[str, Any]) -> float:
    """The median of several measurements."""
    return float(timing["median"])
