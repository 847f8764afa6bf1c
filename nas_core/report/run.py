"""A search's run folder, read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError
from nas_core.files import read_json, read_jsonl
from nas_core.report.tables import Column, Table, describe
from nas_core.space import Architecture, SearchSpace, space_from_dict

__all__ = ["SearchRun", "finalists_table", "limit_label", "read_run"]

UNITS = {"latency_ms": "ms", "params_m": "M parameters", "flops_g": "GFLOPs"}


@dataclass(frozen=True)
class SearchRun:
    """What ``nas-ext search`` left in a folder, finished or not."""

    folder: Path
    settings: dict[str, Any]
    """The ``settings`` of ``config.yaml``; empty if there is none."""
    evaluations: list[dict[str, Any]]
    """The journal: ``search``, ``key``, ``metrics``, ``genes`` of each evaluation, in order."""
    finalists: list[dict[str, Any]]
    """``key``, ``file``, ``best_of``, ``over_limit``, ``metrics``, ``measured``, ``genes``; empty while it runs."""

    @property
    def metric(self) -> str:
        """What the searches minimise."""
        searches = self.settings.get("searches") or {}
        return next((str(s["metric"]) for s in searches.values() if "metric" in s), "loss")

    @property
    def costs(self) -> list[str]:
        """The other objectives, each an axis of a picture of its own, the first being the most important; where there
        are none, the costs that evaluations tell."""
        objectives = [str(name) for name in self.settings.get("objectives", []) if name != self.metric]
        return objectives or [name for name in UNITS if any(e["metrics"].get(name) for e in self.evaluations)]

    @property
    def space(self) -> SearchSpace | None:
        """The space that was searched; None if ``config.yaml`` does not hold it.

        Raises:
            SpaceError: what it holds is no space.
        """
        content = self.settings.get("space") or {}
        return space_from_dict(content, str(self.folder / "config.yaml")) if "choices" in content else None

    def strategies(self) -> list[str]:
        """What searched, with its seed; each once."""
        searches = (self.settings.get("searches") or {}).values()
        return list(dict.fromkeys(f"{s['strategy']} (seed {s.get('seed')})" for s in searches if "strategy" in s))

    def limits(self, cost: str) -> list[float]:
        """The searches' limits of that metric, ascending."""
        searches = (self.settings.get("searches") or {}).values()
        return sorted({float(s["constraints"][cost]) for s in searches if cost in s.get("constraints", {})})

    def points(self, cost: str) -> list[tuple[float, float]]:
        """(cost, metric) of every evaluation that has both."""
        pairs = [(e["metrics"].get(cost), e["metrics"].get(self.metric)) for e in self.evaluations]
        return [(float(x), float(y)) for x, y in pairs if x is not None and y is not None]

    def history(self) -> dict[str, list[float]]:
        """The metric over the evaluations of each search; NaN where one failed."""
        series: dict[str, list[float]] = {}
        for evaluation in self.evaluations:
            value = evaluation["metrics"].get(self.metric)
            series.setdefault(str(evaluation["search"]), []).append(math.nan if value is None else float(value))
        return series

    def agreement(self) -> tuple[list[float], list[float]]:
        """Predicted and measured latency of the finalists that were measured, in ms."""
        pairs = [(f["metrics"].get("latency_ms"), f["measured"].get("latency_ms")) for f in self.finalists]
        known = [(float(p), float(m)) for p, m in pairs if p and m]
        return [p for p, _ in known], [m for _, m in known]


def read_run(folder: str | Path) -> SearchRun:
    """Read a run folder; a search that has not ended yet has no finalists.

    Raises:
        DataError: the folder is missing, holds no search, or one of its files is damaged.
    """
    folder = Path(folder)
    journal = folder / "journal.jsonl"
    if not journal.exists():
        what = "holds no search" if folder.is_dir() else "is no folder"
        raise DataError(f"{folder} {what}: expected the --out folder of 'nas-ext search' with its journal.jsonl")
    evaluations = read_jsonl(journal)
    for number, evaluation in enumerate(evaluations, start=1):
        if not isinstance(evaluation.get("metrics"), dict) or "search" not in evaluation:
            raise DataError(f"{journal}, line {number} is no evaluation of a search; give the folder of another run")
    if not evaluations:
        raise DataError(f"{journal} holds no evaluation yet; wait for the first ones")
    finalists: list[dict[str, Any]] = []
    if (folder / "finalists.json").exists():
        content = read_json(folder / "finalists.json")
        finalists = content.get("finalists", []) if isinstance(content, dict) else []
        if not finalists or not all(map(_is_finalist, finalists)):
            raise DataError(f"{folder / 'finalists.json'} lists no finalists; run the search again to write it anew")
        finalists = [{"measured": {}, "best_of": [], "over_limit": [], "genes": {}, "key": "", **f} for f in finalists]
    return SearchRun(folder, _settings(folder / "config.yaml"), evaluations, finalists)


def _is_finalist(entry: Any) -> bool:
    metrics = entry.get("metrics") if isinstance(entry, dict) else None
    return isinstance(metrics, dict) and all(isinstance(value, int | float | None) for value in metrics.values())


def _settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not readable as YAML ({' '.join(str(error).split())})") from None
    settings = content.get("settings") if isinstance(content, Mapping) else None
    if not isinstance(settings, Mapping):
        return {}
    searches = settings.get("searches") or {}
    if not isinstance(searches, Mapping) or not all(isinstance(one, Mapping) for one in searches.values()):
        raise DataError(f"{path} does not say what searched; restore it, or remove it to see the evaluations alone")
    return dict(settings)


def limit_label(search: str) -> str:
    """A search's name for people: ``latency_ms<=8 params_m<=2`` becomes ``≤ 8 ms, ≤ 2 M parameters``; other names
    stay as they are."""
    parts = [label.partition("<=") for label in search.split()]
    if not all(limit and metric in UNITS for metric, _, limit in parts):
        return search
    return ", ".join(f"≤ {limit} {UNITS[metric]}" for metric, _, limit in parts)


def finalists_table(run: SearchRun, genes: bool = False) -> Table:
    """One line per finalist, the cheapest first; predicted and measured latency side by side, and the limits that it
    was measured above although predicted within; ``genes`` in full at the end of the line if wanted."""
    rows = []
    others = [name for name in run.costs if name not in UNITS]
    first = next(iter(run.costs), run.metric)
    for finalist in sorted(run.finalists, key=lambda f: float(f["metrics"].get(first) or 0.0)):
        metrics, measured = finalist["metrics"], finalist["measured"]
        predicted, real = metrics.get("latency_ms"), measured.get("latency_ms")
        rows.append(
            {
                "architecture": finalist["key"],
                "params_m": metrics.get("params_m"),
                "flops_g": metrics.get("flops_g"),
                "predicted_ms": predicted,
                "measured_ms": real,
                "off_percent": (predicted / real - 1) * 100 if predicted and real else None,
                **{name: metrics.get(name) for name in others},
                run.metric: metrics.get(run.metric),
                "best_of": ", ".join(map(limit_label, finalist["best_of"])),
                "over_limit": ", ".join(map(limit_label, finalist["over_limit"])),
                "genes": describe(Architecture(finalist["genes"])),
            }
        )
    columns = [
        Column("architecture", "architecture"),
        Column("params_m", "params (M)", ".3f"),
        Column("flops_g", "FLOPs (G)", ".3f"),
        Column("predicted_ms", "predicted (ms)", ".2f"),
        Column("measured_ms", "measured (ms)", ".2f"),
        Column("off_percent", "off by (%)", "+.1f"),
        *(Column(name, name, ".4g") for name in others),
        Column(run.metric, run.metric, ".4f"),
        Column("best_of", "best of"),
        Column("over_limit", "measured above"),
        *([Column("genes", "genes")] if genes else []),
    ]
    used = [c for c in columns if any(row.get(c.key) not in (None, "") for row in rows)]
    return Table(used, rows)
