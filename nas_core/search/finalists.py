"""Best architectures of a search: selection, latency measurement and files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.search.archive import Entry, ParetoArchive
from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

_log = logging.getLogger(__name__)

FORMAT = "nas-ext/finalists"
VERSION = 1
BEST = "best.json"
"""File of the best architecture in a run folder."""
TRIES = 4
"""Largest number of further architectures that may be measured above a limit."""

Measure = Callable[[Sequence[Architecture]], Sequence[Mapping[str, Any]]]
Evaluated = Mapping[Architecture, Mapping[str, float]]


@dataclass(frozen=True)
class Finalist:
    """Architecture chosen at the end of a search."""

    architecture: Architecture
    metrics: Mapping[str, float]
    best_of: tuple[str, ...] = ()
    """Searches whose best architecture it is."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    over_limit: tuple[str, ...] = ()
    """Searches whose limits it meets by prediction but exceeds when measured."""

    @property
    def file(self) -> str:
        """Architecture file, relative to the run folder."""
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
    """Return the best architecture of each search, then others spaced evenly along the Pareto front.

    Args:
        best: name of a search -> best architecture.
        count: number of architectures in all, at least those in ``best``.
    """
    names: dict[Architecture, list[str]] = {}
    for name, entry in best.items():
        names.setdefault(entry.architecture, []).append(name)
    entries = {entry.architecture: entry for entry in best.values()}
    others = {archive.vector(entry.metrics): entry for entry in reversed(archive.entries)}  # the first of equal ones
    for entry in best.values():
        others.pop(archive.vector(entry.metrics), None)
    ordered = list(others.values())[::-1]
    remaining = max(0, min(count - len(entries), len(ordered)))
    if remaining:
        indices = np.linspace(0, len(ordered) - 1, remaining).round().astype(int)
        entries.update({ordered[index].architecture: ordered[index] for index in indices})
    return [
        Finalist(architecture, dict(entry.metrics), tuple(names.get(architecture, ())))
        for architecture, entry in entries.items()
    ]


def restore_measurements(folder: Path, finalists: Sequence[Finalist], evaluated: Evaluated) -> list[Finalist]:
    """Return finalists with their measurements in an existing ``finalists.json``, then others measured there."""
    measured = {entry["key"]: entry.get("measured") for entry in read_finalists(folder)}
    updated = [
        replace(finalist, measured=measured.pop(finalist.architecture.key, None) or {}) for finalist in finalists
    ]
    others = [Finalist(architecture, dict(evaluated[architecture]), (), record) for architecture in evaluated
              if measured and (record := measured.get(architecture.key))]  # fmt: skip
    return [*updated, *others]


def read_finalists(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of ``finalists.json``; empty if the file is missing or damaged."""
    try:
        content = read_json(folder / "finalists.json")
    except DataError:
        return []
    entries = content.get("finalists") if isinstance(content, dict) else None
    return [e for e in entries if isinstance(e, dict) and "key" in e] if isinstance(entries, list) else []


def save_finalists(folder: Path, finalists: Sequence[Finalist]) -> None:
    """Write ``finalists.json``, a file for each architecture and, after a single search, :data:`BEST`."""
    for finalist in finalists:
        finalist.architecture.save(folder / finalist.file, metrics=dict(sorted(finalist.metrics.items())))
    (folder / BEST).unlink(missing_ok=True)
    if len({name for finalist in finalists for name in (*finalist.best_of, *finalist.over_limit)}) == 1:
        best = next((finalist for finalist in finalists if finalist.best_of), finalists[0])
        best.architecture.save(folder / BEST, metrics=dict(sorted(best.metrics.items())))
    content = [finalist.to_dict() for finalist in finalists]
    write_json(folder / "finalists.json", {"format": FORMAT, "version": VERSION, "finalists": content})


def load_architecture(path: Path) -> Architecture:
    """Read an architecture; a missing :data:`BEST` of a search under several limits is an error with advice."""
    if path.name == BEST and not path.exists() and read_finalists(path.parent):
        raise DataError(f"{path} does not exist after a search under several limits; give a file of finalists.json")
    return Architecture.load(path)


# -- measured against the limits --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """Minimised metric and limits of one search."""

    metric: str
    limits: Mapping[str, float]
    """Metric -> largest value allowed."""

    def allows(self, metrics: Mapping[str, float]) -> bool:
        """Return True if the metrics include the minimised one and meet the limits."""
        return self.metric in metrics and all(metrics.get(n, np.inf) <= limit for n, limit in self.limits.items())

    def missed(self, finalist: Finalist) -> list[str]:
        """Return the metrics whose measured values exceed the limits; empty if measured on another machine."""
        measured = finalist.measured if finalist.measured.get("same_machine") else {}
        return [name for name, limit in self.limits.items() if measured.get(name, -np.inf) > limit]


def goals_of(strategies: Mapping[str, Strategy]) -> dict[str, Goal]:
    return {
        name: Goal(strategy.metric, {limit.name: float(limit.limit) for limit in strategy.proposals.constraints})
        for name, strategy in strategies.items()
    }


def select_best(finalists: Sequence[Finalist], searches: Mapping[str, Goal]) -> list[Finalist]:
    """Update ``best_of`` and ``over_limit`` of the finalists by measurements.

    The best of a search is the architecture with the lowest metric that was not measured above the limits. Better ones
    get the name of the search in ``over_limit``.
    """
    selected = list(finalists)
    for name, goal in searches.items():

        def order(index: int, name: str = name, goal: Goal = goal) -> tuple[float, bool]:
            finalist = selected[index]
            return finalist.metrics[goal.metric], name not in (*finalist.best_of, *finalist.over_limit)

        indices = sorted((index for index, finalist in enumerate(selected) if goal.allows(finalist.metrics)), key=order)
        missed = [index for index in indices if goal.missed(selected[index])]
        if not indices or indices[0] not in missed:
            continue
        winner = next((index for index in indices if index not in missed), None)
        before = indices if winner is None else indices[: indices.index(winner)]
        for index, finalist in enumerate(selected):
            best = [other for other in finalist.best_of if other != name] + [name] * (index == winner)
            above = [other for other in finalist.over_limit if other != name] + [name] * (index in before)
            selected[index] = replace(finalist, best_of=tuple(best), over_limit=tuple(above))
    return selected


def measure_finalists(
    finalists: Sequence[Finalist], evaluated: Evaluated, searches: Mapping[str, Goal], measure: Measure
) -> list[Finalist]:
    """Measure the finalists; while the best one of a search exceeds a limit, measure further candidates.

    A candidate must meet the limits after its predictions are corrected by the measured relative errors. At most
    :data:`TRIES` candidates may exceed a limit. Earlier measurements are kept.

    Args:
        evaluated: metrics of all architectures of the searches.
        measure: function that returns measurements, as :func:`~nas_core.search.remeasure.remeasure`.
    """
    missing = [finalist.architecture for finalist in finalists if not finalist.measured]
    if not missing:
        return select_best(finalists, searches)
    records = dict(zip(missing, measure(missing), strict=True))
    measured = [
        replace(finalist, measured=dict(records.get(finalist.architecture, finalist.measured)))
        for finalist in finalists
    ]
    selected = select_best(measured, searches)
    for name, goal in searches.items():
        initial = sum(name in finalist.over_limit for finalist in selected)
        while (over_limit := [finalist for finalist in selected if name in finalist.over_limit]) and len(
            over_limit
        ) - initial < TRIES:
            candidate = _next_candidate(selected, over_limit, evaluated, name, goal)
            if candidate is None:
                break
            key = over_limit[-1].architecture.key
            _log.info("%s: measured latency of %s exceeds the limit; measuring %s next", name, key, candidate.key)
            (record,) = measure([candidate])
            if not record:
                break
            selected = select_best([*selected, Finalist(candidate, dict(evaluated[candidate]), (), record)], searches)
    return selected


def _next_candidate(
    selected: Sequence[Finalist], over_limit: Sequence[Finalist], evaluated: Evaluated, name: str, goal: Goal
) -> Architecture | None:
    bounds = dict(goal.limits)
    for finalist in over_limit:
        for metric in goal.missed(finalist):
            corrected = goal.limits[metric] * (finalist.metrics[metric] / finalist.measured[metric])
            bounds[metric] = min(bounds[metric], corrected)
    tighter, measured = Goal(goal.metric, bounds), {finalist.architecture for finalist in selected}
    best = min(
        (finalist.metrics[goal.metric] for finalist in selected if name in finalist.best_of), default=float("inf")
    )
    candidates = [
        architecture
        for architecture, metrics in evaluated.items()
        if architecture not in measured and tighter.allows(metrics) and metrics[goal.metric] < best
    ]
    return min(candidates, key=lambda architecture: evaluated[architecture][goal.metric], default=None)
