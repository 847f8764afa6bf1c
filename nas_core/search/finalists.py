"""The few architectures of a search that are worth measuring, extracting and training further."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.files import write_json
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.space import Architecture

__all__ = ["Finalist", "choose_finalists", "finalist_table", "save_finalists", "with_measured"]

FORMAT = "nas-ext/finalists"
VERSION = 1


@dataclass(frozen=True)
class Finalist:
    """One architecture picked at the end of a search."""

    architecture: Architecture
    metrics: Mapping[str, float]
    """As evaluated and predicted during the search."""
    best_of: tuple[str, ...] = ()
    """Names of the searches whose best architecture it is."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What was measured on the device afterwards, empty if nothing was."""

    @property
    def file(self) -> str:
        """Its architecture file, relative to the run folder."""
        return f"finalists/{self.architecture.key}.json"

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.architecture.key,
            "file": self.file,
            "best_of": list(self.best_of),
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


def save_finalists(folder: Path, finalists: Sequence[Finalist]) -> None:
    """Write ``finalists.json`` and one architecture file each, for ``nas-ext extract`` and ``--subnet``."""
    for finalist in finalists:
        finalist.architecture.save(folder / finalist.file, metrics=dict(sorted(finalist.metrics.items())))
    content = [finalist.to_dict() for finalist in finalists]
    write_json(folder / "finalists.json", {"format": FORMAT, "version": VERSION, "finalists": content})


def finalist_table(finalists: Sequence[Finalist], metric: str = "loss") -> str:
    """A table for people: score, size, and predicted against measured latency."""
    head = ["architecture", metric, "params_m", "flops_g", "predicted ms", "measured ms", "off by", "best of"]
    lines = [head]
    for finalist in finalists:
        predicted, measured = finalist.metrics.get("latency_ms"), finalist.measured.get("latency_ms")
        off = f"{predicted / measured - 1:+.1%}" if predicted is not None and measured else "-"
        numbers = [finalist.metrics.get(name) for name in (metric, "params_m", "flops_g")]
        lines.append(
            [finalist.architecture.key]
            + [_number(number) for number in (*numbers, predicted, measured)]
            + [off, ", ".join(finalist.best_of) or "-"]
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    align = [str.ljust, *[str.rjust] * (len(head) - 2), str.ljust]
    rows = ([fit(cell, width) for fit, cell, width in zip(align, line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.4g}"
