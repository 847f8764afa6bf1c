"""A search's run folder, read back and turned into a page and a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nas_core.errors import DataError
from nas_core.files import read_json, read_jsonl, write_atomic
from nas_core.report import plots
from nas_core.report.html import Page
from nas_core.report.tables import Column, Table, describe
from nas_core.space import Architecture

AXES = {"latency_ms": "predicted latency (ms)", "params_m": "parameters (M)", "flops_g": "FLOPs (G)"}

__all__ = ["SearchRun", "read_run", "write_report"]


@dataclass(frozen=True)
class SearchRun:
    """What ``nas-ext search`` left in a folder, finished or not."""

    folder: Path
    settings: dict[str, Any]
    """The ``settings`` of ``config.yaml``; empty if there is none."""
    evaluations: list[dict[str, Any]]
    """The journal: ``search``, ``key``, ``metrics``, ``genes`` of each evaluation, in order."""
    finalists: list[dict[str, Any]]
    """``key``, ``file``, ``best_of``, ``metrics``, ``measured``, ``genes``; empty while the search runs."""

    @property
    def metric(self) -> str:
        """What the searches minimise."""
        searches = self.settings.get("searches") or {}
        return next((str(s["metric"]) for s in searches.values() if "metric" in s), "loss")

    @property
    def cost(self) -> str:
        """The limited metric that is the picture's other axis."""
        objectives = [name for name in self.settings.get("objectives", []) if name != self.metric]
        return str(objectives[0]) if objectives else "latency_ms"

    @property
    def limits(self) -> list[float]:
        """The searches' limits of :attr:`cost`, ascending."""
        searches = (self.settings.get("searches") or {}).values()
        return sorted({float(s["constraints"][self.cost]) for s in searches if self.cost in s.get("constraints", {})})

    def points(self) -> list[tuple[float, float]]:
        """(cost, metric) of every evaluation that has both."""
        pairs = [(e["metrics"].get(self.cost), e["metrics"].get(self.metric)) for e in self.evaluations]
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
        if not finalists or not all(isinstance(f, dict) and isinstance(f.get("metrics"), dict) for f in finalists):
            raise DataError(f"{folder / 'finalists.json'} lists no finalists; run the search again to write it anew")
        finalists = [{"measured": {}, "best_of": [], "genes": {}, "key": "", **f} for f in finalists]
    return SearchRun(folder, _settings(folder / "config.yaml"), evaluations, finalists)


def _settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not readable as YAML ({' '.join(str(error).split())})") from None
    settings = content.get("settings") if isinstance(content, Mapping) else None
    return dict(settings) if isinstance(settings, Mapping) else {}


def limit_label(search: str) -> str:
    """A search's name for people: ``latency_ms<=8 params_m<=2`` becomes ``≤ 8 ms, ≤ 2 M parameters``; other names
    stay as they are."""
    units = {"latency_ms": "ms", "params_m": "M parameters", "flops_g": "GFLOPs"}
    parts = [label.partition("<=") for label in search.split()]
    if not all(limit and metric in units for metric, _, limit in parts):
        return search
    return ", ".join(f"≤ {limit} {units[metric]}" for metric, _, limit in parts)


def finalists_table(run: SearchRun, genes: bool = False) -> Table:
    """One line per finalist, the fastest first; predicted and measured latency side by side; ``genes`` in full at the
    end of the line if wanted."""
    rows = []
    for finalist in run.finalists:
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
                run.metric: metrics.get(run.metric),
                "best_of": ", ".join(map(limit_label, finalist["best_of"])),
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
        Column(run.metric, run.metric, ".4f"),
        Column("best_of", "best of"),
        *([Column("genes", "genes")] if genes else []),
    ]
    used = [c for c in columns if any(row.get(c.key) not in (None, "") for row in rows)]
    return Table(used, sorted(rows, key=lambda row: row["predicted_ms"] or 0.0))


def write_report(folder: str | Path) -> Path:
    """Write ``report.html`` and, for a finished search, ``finalists.csv`` into a run folder; returns the page's path.

    Raises:
        DataError: see :func:`read_run`.
    """
    run = read_run(folder)
    failed = sum(e["metrics"].get(run.metric) is None for e in run.evaluations)
    space = (run.settings.get("space") or {}).get("name", "unknown")
    page = Page("Architecture search", f"Search space {space}, run folder {run.folder.name}.")
    page.facts(
        {
            "evaluations": f"{len(run.evaluations)} ({failed} failed)" if failed else len(run.evaluations),
            "searches": ", ".join(map(limit_label, run.history())),
            **{name: value for name, value in run.settings.items() if isinstance(value, str)},
        }
    )
    add_pictures(page, run)
    page.heading("Finalists")
    if run.finalists:
        page.table(finalists_table(run))
        page.facts({f["key"]: describe(Architecture(f["genes"])) for f in run.finalists})
        write_atomic(run.folder / "finalists.csv", finalists_table(run, genes=True).csv())
    else:
        page.paragraph("The search has not ended; finalists are chosen at its end. Start it again to continue it.")
    path = run.folder / "report.html"
    page.save(path)
    return path


def add_pictures(page: Page, run: SearchRun) -> None:
    """The Pareto picture, predicted against measured latency of the finalists, and the course of the search."""
    marks = [
        plots.Mark(", ".join(map(limit_label, f["best_of"])), f["metrics"][run.cost], f["metrics"][run.metric])
        for f in run.finalists
        if f["best_of"] and run.cost in f["metrics"] and run.metric in f["metrics"]
    ]
    page.heading("Pareto front")
    picture = plots.pareto(run.points(), marks, run.limits, AXES.get(run.cost, run.cost), run.metric)
    page.image(
        picture,
        f"{run.metric} against {run.cost} of all evaluated architectures, with their Pareto front",
        "Each dot is an architecture evaluated with inherited weights; circles are the best within each limit.",
    )
    history = {limit_label(name): values for name, values in run.history().items()}
    pictures = [
        (
            plots.progress(history, f"best {run.metric} so far"),
            "best value so far over the evaluations",
            "Course of each search. Architectures evaluated by an earlier search are not evaluated again.",
        )
    ]
    predicted, measured = run.agreement()
    if predicted:
        picture = plots.agreement({"finalists": (predicted, measured)})
        pictures.append((picture, "predicted against measured latency", "Finalists, measured again after the search."))
    page.heading("Course of the search")
    page.images(pictures)
