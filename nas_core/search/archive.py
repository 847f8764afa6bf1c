"""Pareto archive of architectures."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError
from nas_core.files.writing import write_atomic
from nas_core.space import Architecture


@dataclass(frozen=True)
class Entry:
    """Architecture with its metrics."""

    architecture: Architecture
    metrics: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "key": self.architecture.key,
            "metrics": dict(sorted(self.metrics.items())),
            "genes": self.architecture.to_dict(),
        }


class ParetoArchive:
    """Pareto front of architectures.

    All objectives are minimised. Architectures with equal values are all kept.

    Args:
        objectives: metric names, such as ``("loss", "latency_ms", "params_m")``.
    """

    def __init__(self, objectives: Sequence[str]) -> None:
        if not objectives or len(set(objectives)) != len(objectives):
            raise ConfigError(f"objectives are {list(objectives)}; expected one or more different metric names")
        self.objectives = tuple(objectives)
        self._entries: dict[Architecture, Entry] = {}
        self._values = np.empty((0, len(self.objectives)))

    def add(self, architecture: Architecture, metrics: Mapping[str, float]) -> bool:
        """Add an architecture; return False if it is dominated, already present, or lacks a finite objective."""
        vector = np.array(self.vector(metrics))
        if architecture in self._entries or not np.isfinite(vector).all():
            return False
        at_most, at_least = (self._values <= vector).all(1), (self._values >= vector).all(1)
        if bool((at_most & ~at_least).any()):
            return False
        undominated = np.asarray(at_most | ~at_least)
        if not undominated.all():
            self._entries = dict(compress(self._entries.items(), undominated.tolist()))
        self._values = np.concatenate([self._values[undominated], vector[None]])
        self._entries[architecture] = Entry(architecture, dict(metrics))
        return True

    def vector(self, metrics: Mapping[str, float]) -> tuple[float, ...]:
        """Return the objectives' values; NaN if one is missing."""
        return tuple(float(metrics.get(name, math.nan)) for name in self.objectives)

    @property
    def entries(self) -> list[Entry]:
        """Entries sorted by objectives, then by architecture key."""
        return sorted(self._entries.values(), key=lambda entry: (self.vector(entry.metrics), entry.architecture.key))

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def save(self, path: str | Path) -> None:
        write_table(path, self.entries, self.objectives)


def write_table(path: str | Path, entries: Sequence[Entry], first: Sequence[str] = ()) -> None:
    """Write a CSV table with key, metrics (``first`` ones first) and genes of each architecture."""
    metrics = [*first, *sorted({name for entry in entries for name in entry.metrics} - set(first))]
    genes = sorted({name for entry in entries for name in entry.architecture})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["key", *metrics, *genes])
    for entry in entries:
        row = {name: json.dumps(value) for name, value in entry.metrics.items()}
        for name, gene in entry.architecture.items():
            row[name] = " ".join(map(str, gene)) if isinstance(gene, tuple) else str(gene)
        writer.writerow([entry.architecture.key, *(row.get(name, "") for name in [*metrics, *genes])])
    write_atomic(path, text.getvalue())
