"""A search's run folder, read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.files import MOST_OWN_TEXT, read_json, read_jsonl, read_yaml, real_path
from nas_core.report.search.checks import is_evaluation, is_finalist, wrong_note, wrong_setting
from nas_core.report.tables import Column, Table, describe
from nas_core.search.metrics import Metric, metric_named
from nas_core.search.sessions import read_sessions
from nas_core.space import Architecture, SearchSpace, space_from_dict

__all__ = ["SearchRun", "finalists_table", "limit_label", "read_run"]

_NEGATED = "-"
"""In front of a metric's name: its negative, which a search minimises where larger is better."""
_UNNAMED = "default"
"""What NNI's trials call the number that the search goes by."""

UNITS = {
    "latency_ms": "ms",
    "params_m": "M parameters",
    "flops_g": "GFLOPs",
    "memory_mb": "MB memory",
    "cache_mb": "MB cache",
}


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
    notes: dict[str, Any] = field(default_factory=dict)
    """The ``notes`` of ``config.yaml``: paths, versions, the units of the metrics."""
    sessions: list[dict[str, Any]] = field(default_factory=list)
    """When, where and how long it ran, see :func:`~nas_core.search.sessions.read_sessions`."""

    @property
    def name(self) -> str:
        """The experiment's name where it has one, else the folder's."""
        experiment = self.notes.get("experiment") or {}
        names = [str(experiment[key]) for key in ("name", "id") if experiment.get(key)]
        return f"{names[0]} ({names[1]})" if len(names) > 1 else names[0] if names else real_path(self.folder).name

    @cached_property
    def minimised(self) -> str:
        """The journal's key of what the searches minimise: ``loss``, or ``-top1`` for the largest top-1."""
        searches = self.settings.get("searches") or {}
        return next((str(s["metric"]) for s in searches.values() if "metric" in s), "loss")

    @property
    def maximised(self) -> bool:
        """Whether larger values of :attr:`metric` are better."""
        return self.minimised.startswith(_NEGATED)

    @cached_property
    def metric(self) -> str:
        """What the searches look for, by its own name where trials report it under that name too."""
        name = self.minimised.removeprefix(_NEGATED)
        known = [e["metrics"] for e in self.evaluations if e["metrics"].get(_UNNAMED) is not None]
        if name != _UNNAMED or not known:
            return name
        others = [other for other in known[0] if other not in (_UNNAMED, self.minimised)]
        same = (other for other in others if all(metrics.get(other) == metrics[_UNNAMED] for metrics in known))
        return next(same, name)

    @property
    def objective(self) -> str:
        """What the searches look for, in words: ``minimise loss``."""
        return f"{'maximise' if self.maximised else 'minimise'} {self.described(self.metric).title}"

    @property
    def from_supernet(self) -> bool:
        """Whether the run names a supernet's checkpoint, from which its architectures can be extracted."""
        return any((self.notes.get("checkpoint"), *map(self.settings.get, ("checkpoint", "checkpoint_sha256"))))

    @property
    def source(self) -> str:
        """How the run obtained its values, in words that follow "an architecture"."""
        if self.notes.get("engine"):
            return f"with the result of its {self.notes['engine']} trial"
        if not self.from_supernet:
            return "with the value that the evaluation function of the search returned"
        if self.settings.get("calibration_sha256"):
            return "with the value that a calibration estimates from inherited weights of the supernet"
        return "evaluated with inherited weights of the supernet"

    def described(self, name: str) -> Metric:
        """What a metric is called, and its unit."""
        return metric_named(name, self.notes.get("units"))

    def value(self, metrics: Mapping[str, Any], name: str | None = None) -> float | None:
        """A metric of one evaluation, by default the one that is searched for; None if it has none."""
        name = self.metric if name is None else name
        number = metrics.get(name)
        if number is None and name == self.metric and (negative := metrics.get(self.minimised)) is not None:
            number = -negative if self.maximised else negative
        return None if number is None or not math.isfinite(number) else float(number)

    @property
    def costs(self) -> list[str]:
        """The other objectives, each an axis of a picture of its own, the first being the most important; where there
        are none, the costs that evaluations tell."""
        objectives = [str(name) for name in self.settings.get("objectives", []) if name not in self._searched]
        return objectives or [name for name in UNITS if any(e["metrics"].get(name) for e in self.evaluations)]

    @property
    def others(self) -> list[str]:
        """All other metrics that evaluations tell, such as top-1 beside the loss; costs last."""
        told = dict.fromkeys(name for evaluation in self.evaluations for name in evaluation["metrics"])
        others = [name for name in told if name not in (*self._searched, *self.costs)]
        return sorted(others, key=lambda name: name in UNITS)

    @property
    def _searched(self) -> tuple[str, ...]:
        """All names of the metric that is searched for."""
        plain = self.minimised.removeprefix(_NEGATED)
        return (self.metric, plain, self.minimised)

    @property
    def space(self) -> SearchSpace | None:
        """The space that was searched; None if ``config.yaml`` does not hold it.

        Raises:
            SpaceError: what it holds is no space.
        """
        content = self.settings.get("space") or {}
        return space_from_dict(content, str(self.folder / "config.yaml")) if "choices" in content else None

    @property
    def given(self) -> dict[str, str]:
        """Names of architectures that were given to the run for comparison, with their keys."""
        found = self.settings.get("given")
        return {str(name): str(key) for name, key in found.items()} if isinstance(found, Mapping) else {}

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
        pairs = [(self.value(e["metrics"], cost), self.value(e["metrics"])) for e in self.evaluations]
        return [(x, y) for x, y in pairs if x is not None and y is not None]

    def history(self) -> dict[str, list[float]]:
        """The metric over the evaluations of each search; NaN where one failed."""
        series: dict[str, list[float]] = {}
        for evaluation in self.evaluations:
            value = self.value(evaluation["metrics"])
            series.setdefault(str(evaluation["search"]), []).append(math.nan if value is None else value)
        return series

    def agreement(self) -> tuple[list[float], list[float]]:
        """Predicted and measured latency of the finalists that were measured, in ms."""
        told = [[self.value(f[part], "latency_ms") for part in ("metrics", "measured")] for f in self.finalists]
        known = [(p, m) for p, m in told if p and m]
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
        if not is_evaluation(evaluation):
            raise DataError(
                f"{journal}, line {number} is no evaluation of a search; expected its search, metrics that are numbers"
                " and genes; give the folder of another run"
            )
        evaluation.setdefault("genes", {})
    if not evaluations:
        raise DataError(f"{journal} holds no evaluation yet; wait for the first ones")
    finalists: list[dict[str, Any]] = []
    if (folder / "finalists.json").exists():
        content = read_json(folder / "finalists.json")
        finalists = content.get("finalists", []) if isinstance(content, dict) else []
        if not isinstance(finalists, list) or not finalists or not all(map(is_finalist, finalists)):
            raise DataError(f"{folder / 'finalists.json'} lists no finalists; run the search again to write it anew")
        finalists = [{"measured": {}, "best_of": [], "over_limit": [], "genes": {}, "key": "", **f} for f in finalists]
    settings, notes = _config(folder / "config.yaml")
    return SearchRun(folder, settings, evaluations, finalists, notes, read_sessions(folder))


def _config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and notes."""
    if not path.exists():
        return {}, {}
    content = read_yaml(path, MOST_OWN_TEXT)
    found = [content.get(part) if isinstance(content, Mapping) else None for part in ("settings", "notes")]
    settings, notes = (dict(part) if isinstance(part, Mapping) else {} for part in found)
    if wrong := wrong_setting(settings) or wrong_note(notes):
        raise DataError(f"{path}: {wrong}; restore the file, or remove it to see the evaluations alone")
    return settings, notes


def limit_label(search: str) -> str:
    """A search's name for people: ``latency_ms<=8 params_m<=2`` becomes ``≤ 8 ms, ≤ 2 M parameters``, ``unlimited``
    becomes ``without a limit``; other names stay as they are."""
    if search == "unlimited":
        return "without a limit"
    parts = [label.partition("<=") for label in search.split()]
    if not all(limit and metric in UNITS for metric, _, limit in parts):
        return search
    return ", ".join(f"≤ {limit} {UNITS[metric]}" for metric, _, limit in parts)


def finalists_table(run: SearchRun, genes: bool = False) -> Table:
    """One line per finalist, the cheapest first: every metric with its unit, predicted and measured latency side by
    side, the limits that it was measured above although predicted within; ``genes`` in full at the end if wanted."""
    rows = []
    others = [name for name in (*run.costs, *run.others) if name not in UNITS]
    first = next(iter(run.costs), run.metric)
    for finalist in sorted(run.finalists, key=lambda f: run.value(f["metrics"], first) or 0.0):
        metrics, measured = finalist["metrics"], finalist["measured"]
        predicted, real = run.value(metrics, "latency_ms"), run.value(measured, "latency_ms")
        rows.append(
            {
                "architecture": finalist["key"],
                "params_m": metrics.get("params_m"),
                "flops_g": metrics.get("flops_g"),
                "memory_mb": metrics.get("memory_mb"),
                "cache_mb": metrics.get("cache_mb"),
                "predicted_ms": predicted,
                "measured_ms": real,
                "off_percent": (predicted / real - 1) * 100 if predicted and real else None,
                **{name: metrics.get(name) for name in others},
                run.metric: run.value(metrics),
                "best_of": ", ".join(map(limit_label, finalist["best_of"])),
                "over_limit": ", ".join(map(limit_label, finalist["over_limit"])),
                "genes": describe(Architecture(finalist["genes"])),
            }
        )
    named = [run.described(name) for name in (run.metric, *others)]
    columns = [
        Column("architecture", "architecture"),
        *(Column(metric.name, metric.title, metric.spec) for metric in named),
        Column("params_m", "params (M)", ".3f"),
        Column("flops_g", "FLOPs (G)", ".3f"),
        Column("memory_mb", "memory (MB)", ".2f"),
        Column("cache_mb", "cache (MB)", ".2f"),
        Column("predicted_ms", "predicted (ms)", ".2f"),
        Column("measured_ms", "measured (ms)", ".2f"),
        Column("off_percent", "off by (%)", "+.1f"),
        Column("best_of", "best"),
        Column("over_limit", "measured above"),
        *([Column("genes", "genes")] if genes else []),
    ]
    used = [c for c in columns if any(row.get(c.key) not in (None, "") for row in rows)]
    return Table(used, rows)
