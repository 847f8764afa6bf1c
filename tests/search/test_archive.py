"""The Pareto archive against a plain definition of the front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from nas_core.search import ParetoArchive
from nas_core.search.archive import Entry, write_table
from nas_core.space import Architecture

OBJECTIVES = ("loss", "latency_ms", "params_m")


@dataclass
class NaiveArchive:
    """The plain twin: every pair is compared, one objective at a time."""

    objectives: Sequence[str]
    kept: dict[Architecture, dict[str, float]] = field(default_factory=dict)

    def add(self, architecture: Architecture, metrics: dict[str, float]) -> bool:
        def dominates(first: dict[str, float], second: dict[str, float]) -> bool:
            pairs = [(first[name], second[name]) for name in self.objectives]
            return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

        finite = all(math.isfinite(metrics.get(name, math.nan)) for name in self.objectives)
        if architecture in self.kept or not finite or any(dominates(there, metrics) for there in self.kept.values()):
            return False
        self.kept = {one: there for one, there in self.kept.items() if not dominates(metrics, there)}
        self.kept[architecture] = metrics
        return True


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("count", [1, 3])
def test_it_is_its_plain_twin(count: int, seed: int) -> None:
    """With ties, architectures that come twice, and values that are missing or not finite; on fronts of many points."""
    rng = np.random.default_rng(seed)
    objectives = OBJECTIVES[:count]
    archive, naive = ParetoArchive(objectives), NaiveArchive(objectives)
    for _ in range(400):
        values = rng.integers(0, 60, count) - 60.0 * rng.integers(0, 2)
        values[-1] = rng.integers(0, 4) - values[:-1].sum()  # most are on or near one front
        metrics = dict(zip(objectives, values.tolist(), strict=True)) | {"other": float(rng.random())}
        if rng.random() < 0.05:
            metrics[objectives[0]] = float(rng.choice([np.nan, np.inf, -np.inf]))
        if rng.random() < 0.02:
            del metrics[objectives[-1]]
        architecture = Architecture({"n": int(rng.integers(0, 350))})
        assert archive.add(architecture, metrics) == naive.add(architecture, metrics)
    expected = sorted(
        (Entry(one, metrics) for one, metrics in naive.kept.items()),
        key=lambda entry: (tuple(entry.metrics[name] for name in objectives), entry.architecture.key),
    )
    assert archive.entries == expected and len(archive) == len(expected)


def test_a_table_has_a_column_for_everything_any_entry_has(tmp_path: Path) -> None:
    entries = [
        Entry(Architecture({"n": 1, "w": [2, 3]}), {"b": 0.1, "loss": 2.0}),
        Entry(Architecture({"n": 2, "k": "x,y"}), {"a": 1e-9, "loss": 3.0}),
    ]
    write_table(tmp_path / "table.csv", entries, ["loss"])
    keys = [entry.architecture.key for entry in entries]
    assert (tmp_path / "table.csv").read_text() == (
        f'key,loss,a,b,k,n,w\n{keys[0]},2.0,,0.1,,1,2 3\n{keys[1]},3.0,1e-09,,"x,y",2,\n'
    )
    write_table(tmp_path / "plain.csv", entries[:1])
    assert (tmp_path / "plain.csv").read_text().splitlines()[0] == "key,b,loss,n,w"
