"""The few architectures of a search that are worth measuring, extracting and training further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.space import Architecture

FORMAT = "nas-ext/finalists"
VERSION = 1


@dataclass(frozen=True)
class Finalist:
    """One architecture picked at the end of a search."""

    architecture: Architecture
    metrics: Mapping[str, float]
    """Metrics as evaluated and predicted during the search."""
    best_of: tuple[str, ...] = ()
    """Names of the searches whose best architecture it is."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What was measured on the device afterwards, empty if nothing was."""
    over_limit: tuple[str, ...] = ()
    """Names of the searches whose best it would be, had it not been measured above their limits."""

    @property
    def file(self) -> str:
        """Its architecture file, relative to the run folder."""
        return f"finalists/{self.architecture.key}.json"

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.architecture.key,
            "file": self.file,
            "best_of": list(self.best_of),
            "over_limit": list(self.over_limit),
            "metrics": dict(sorted(self.metrics.items())),
            "measured": dict(self.measured),
            "genes": self.architecture.to_dict(),
        }


def choose_finalists(best: Mapping[str, Entry], archive: ParetoArchive, count: int) -> list[Finalist]:
    """The best of each search, then architectures spread evenly along the front, ``count`` in all if there are."""
    names: dict[Architecture, list[str]] = {}
    for name, entry in best.items():
        names.setdefault(entry.architecture, []).append(name)
    entries = {entry.architecture: entry for entry in best.values()}
    vectors = {archive.vector(entry.metrics) for entry in best.values()}
    others = []
    for entry in archive:  # of equally good ones the first
        if archive.vector(entry.metrics) not in vectors:
            vectors.add(archive.vector(entry.metrics))
            others.append(entry)
    wanted = max(0, min(count - len(entries), len(others)))
    if wanted:
        places = np.linspace(0, len(others) - 1, wanted).round().astype(int)
        entries.update({others[place].architecture: others[place] for place in places})
    return [
        Finalist(entry.architecture, dict(entry.metrics), tuple(names.get(entry.architecture, ())))
        for entry in entries.values()
    ]


def with_measured(finalists: Sequence[Finalist], measured: Sequence[Mapping[str, Any]]) -> list[Finalist]:
    """The finalists with one record of measurements each, in the same order."""
    return [replace(finalist, measured=dict(record)) for finalist, record in zip(finalists, measured, strict=True)]


def with_measured_before(
    folder: Path, finalists: Sequence[Finalist], evaluated: Mapping[Architecture, Mapping[str, float]]
) -> list[Finalist]:
    """The finalists with what an earlier end of the same search measured, so that repeating it loses nothing; then
    others of what was ``evaluated`` that it measured."""
    known = {entry.get("key"): entry.get("measured") for entry in finalists_before(folder)}
    chosen = with_measured(finalists, [known.pop(finalist.architecture.key, None) or {} for finalist in finalists])
    others = {one: measured for one in evaluated if known and (measured := known.get(one.key))}
    return [*chosen, *(Finalist(one, dict(evaluated[one]), (), record) for one, record in others.items())]


def finalists_before(folder: Path) -> list[dict[str, Any]]:
    """What ``finalists.json`` lists; nothing if it is missing or damaged, as it is about to be written anew.

    Raises:
        NasExtError: it cannot be read.
    """
    try:
        content = read_json(folder / "finalists.json")
    except DataError:
        return []
    listed = content.get("finalists") if isinstance(content, dict) else None
    return [entry for entry in listed if _is_readable(entry)] if isinstance(listed, list) else []


def _is_readable(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
        return False
    measured = entry.get("measured") or {}
    return isinstance(measured, dict) and isinstance(measured.get("latency_ms"), int | float | None)


def save_finalists(folder: Path, finalists: Sequence[Finalist]) -> None:
    """Write ``finalists.json`` and one architecture file each, for ``nas-ext extract`` and ``--subnet``."""
    for finalist in finalists:
        finalist.architecture.save(folder / finalist.file, metrics=dict(sorted(finalist.metrics.items())))
    content = [finalist.to_dict() for finalist in finalists]
    write_json(folder / "finalists.json", {"format": FORMAT, "version": VERSION, "finalists": content})
