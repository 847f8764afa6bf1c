"""HTML page that compares several searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError
from nas_core.files.reading import real_path
from nas_core.report import figures
from nas_core.report.page import Page
from nas_core.report.run import (
    UNITS,
    SearchRun,
    facts_of,
    limit_notes,
    machine_of,
    read_run,
    start_time,
    total_duration,
)
from nas_core.report.search_page import best_number, cloud_of, finalist_labels, points_of
from nas_core.report.tables import Column, Table

_LIMITS = 4
"""Number of costs at which searches without limits are compared."""
_SHARED_SETTINGS = {
    "space": "search space",
    "data": "data",
    "valid_subset": "validation split",
    "valid_samples": "evaluated part",
    "checkpoint_sha256": "checkpoint",
    "latency_model_sha256": "latency model",
}
"""Setting -> displayed name, for settings that should be equal in all runs."""


def write_comparison(folders: Sequence[Path], path: Path) -> Path:
    """Write an HTML page that compares run folders.

    Raises:
        ConfigError: the runs have different objectives, or no cost in common.
    """
    runs = [read_run(folder) for folder in folders]
    names, costs = names_of(runs), _common_costs(runs)
    first = runs[0]
    points = points_of(runs, names)
    page = Page(f"{len(runs)} architecture searches", f"Compared: {', '.join(names)}.")
    if different := _differing_settings(runs):
        page.paragraph(f"The runs differ in {', '.join(different)}.")
    page.heading("Best of each run")
    page.table(comparison_table(runs))
    page.paragraph("Volume: share of the box around all fronts that a run's front dominates.")
    for run, name in zip(runs, names, strict=True):
        for note in limit_notes(run):
            page.paragraph(f"{name}: {note}")
    page.heading("Pareto fronts")
    y, sources = first.metric_info(first.metric).title, ", or ".join(dict.fromkeys(run.source for run in runs))
    for cost in costs:
        clouds = []
        for index, (run, name) in enumerate(zip(runs, names, strict=True)):
            labels = [replace(label, name="") for label in finalist_labels(run, points, cost, index)]
            clouds.append(replace(cloud_of(run, points, cost, name, index), labels=labels))
        title = first.metric_info(cost).title
        page.plot(
            figures.fronts(clouds, title, y, maximised=first.maximised, own_fronts=True),
            f"{y} against {title} of each run",
            f"Each dot is an architecture {sources}. Circles are finalists.",
        )
    page.points(points, best_number(runs, points), "All evaluations")
    page.heading("Course of the searches")
    history = {
        name: [v for values in run.history().values() for v in values] for run, name in zip(runs, names, strict=True)
    }
    page.plot(
        figures.progress(history, f"best {y} so far", first.maximised),
        "best value so far over the evaluations of each run",
    )
    page.heading("The runs")
    for run, name in zip(runs, names, strict=True):
        page.details(name, facts_of(run))
    page.save(path)
    return path


def comparison_table(runs: Sequence[SearchRun]) -> Table:
    """Return a row per run, with its best value within each limit."""
    cost = _common_costs(runs)[0]
    fronts = [figures.pareto_front(run.points(cost), run.maximised) for run in runs]
    limits = sorted({limit for run in runs for limit in run.limits(cost)}) or _even_limits(fronts)
    volumes = _volumes(fronts, runs[0].maximised)
    metric = runs[0].metric_info(runs[0].metric)
    unit = UNITS.get(cost, "")
    rows = []
    for run, name, front, volume in zip(runs, names_of(runs), fronts, volumes, strict=True):
        row: dict[str, Any] = {
            "run": name,
            "by": ", ".join(run.strategies()),
            "evaluations": len(run.evaluations),
            "front": len(front),
            "volume": volume,
            "started": start_time(run),
            "duration": total_duration(run),
            "machine": machine_of(run),
        }
        for limit in limits:
            allowed = [y for x, y in _within_limit(run, cost, limit, front) if x <= limit]
            row[f"{limit:g}"] = allowed[-1] if allowed else None
        rows.append(row)
    columns = [
        Column("run", "run"),
        *(Column(f"{limit:g}", f"{metric.title} at ≤ {limit:g} {unit}".rstrip(), metric.spec) for limit in limits),
        Column("volume", "volume", ".3f"),
        Column("front", "on the front", "d"),
        Column("evaluations", "evaluations", "d"),
        Column("by", "by"),
        Column("started", "started"),
        Column("duration", "duration"),
        Column("machine", "machine"),
    ]
    return Table(columns, rows).without_empty_columns()


def _within_limit(
    run: SearchRun, cost: str, limit: float, front: Sequence[tuple[float, float]]
) -> Sequence[tuple[float, float]]:
    missed = {f["key"] for f in run.finalists if f["measured"].get(cost) is not None and f["measured"][cost] > limit}
    if not missed:
        return front
    allowed = [evaluation for evaluation in run.evaluations if str(evaluation.get("key")) not in missed]
    return figures.pareto_front(replace(run, evaluations=allowed).points(cost), run.maximised)


def names_of(runs: Sequence[SearchRun]) -> list[str]:
    """Return a different name for each run, from its path if necessary.

    Raises:
        ConfigError: a run is given twice.
    """
    folders = [real_path(run.folder) for run in runs]
    if repeated := next((folder for folder in folders if folders.count(folder) > 1), None):
        raise ConfigError(f"run folder {repeated} is given twice; give each run once")
    names = [run.name for run in runs]
    depth = 1
    while len(set(names)) < len(names):
        depth += 1
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
    return names


def _common_costs(runs: Sequence[SearchRun]) -> list[str]:
    first = runs[0]
    for run in runs[1:]:
        if (run.metric, run.maximised) != (first.metric, first.maximised):
            raise ConfigError(
                f"the objective of {first.folder} is to {first.objective}, that of {run.folder} is to"
                f" {run.objective}; expected runs with the same objective"
            )
    common = [name for name in first.costs if all(name in run.costs and run.points(name) for run in runs)]
    if not common:
        raise ConfigError(
            "the runs have no cost (such as latency_ms) in common: "
            + "; ".join(f"{run.folder} has {', '.join(run.costs) or 'none'}" for run in runs)
            + "; give runs that share one"
        )
    return common


def _differing_settings(runs: Sequence[SearchRun]) -> list[str]:
    first = runs[0]
    different = [
        label
        for name, label in _SHARED_SETTINGS.items()
        if any(r.settings.get(name) != first.settings.get(name) for r in runs)
    ]
    units = {run.metric_info(run.metric).title for run in runs}
    return different + ([f"units of the objective ({', '.join(sorted(units))})"] if len(units) > 1 else [])


def _even_limits(fronts: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    low, high = max(front[0][0] for front in fronts), max(front[-1][0] for front in fronts)
    return sorted({float(f"{value:.3g}") for value in np.linspace(low, high, _LIMITS + 1)[1:]})


def _volumes(fronts: Sequence[Sequence[tuple[float, float]]], maximised: bool) -> list[float]:
    """Return the fraction of the box around all fronts that each front dominates."""
    sign = -1.0 if maximised else 1.0
    all_points = np.array([(x, sign * y) for front in fronts for x, y in front])
    low, high = all_points.min(axis=0), all_points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    volumes = []
    for front in fronts:
        points = [((x - low[0]) / size[0], (sign * y - low[1]) / size[1]) for x, y in front]
        ends = [*(x for x, _ in points[1:]), 1.0]
        volumes.append(float(sum((end - x) * (1 - y) for (x, y), end in zip(points, ends, strict=True))))
    return volumes
