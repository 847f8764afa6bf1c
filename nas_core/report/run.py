"""Content of run folders of searches, and tables and text about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json, read_yaml, real_path
from nas_core.report.tables import Column, Table, describe
from nas_core.search.metrics import Metric, metric_named
from nas_core.search.sessions import read_sessions
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict

_NEGATED = "-"
"""Prefix of the name of a metric that is maximised."""
_UNNAMED = "default"
"""Name of the objective in NNI trials."""

UNITS = {
    "latency_ms": "ms",
    "params_m": "M parameters",
    "flops_g": "GFLOPs",
    "memory_mb": "MB memory",
    "cache_mb": "MB cache",
}


@dataclass(frozen=True)
class SearchRun:
    """Content of a run folder of ``nas-ext search``, finished or not."""

    folder: Path
    settings: dict[str, Any]
    """``settings`` in ``config.yaml``; empty without the file."""
    evaluations: list[dict[str, Any]]
    """Journal entries with ``search``, ``key``, ``metrics`` and ``genes``."""
    finalists: list[dict[str, Any]]
    """Content of ``finalists.json``; empty before the end of the search."""
    notes: dict[str, Any] = field(default_factory=dict)
    """``notes`` in ``config.yaml``: paths, versions and units."""
    sessions: list[dict[str, Any]] = field(default_factory=list)
    """Sessions of the search, see :func:`~nas_core.search.sessions.read_sessions`."""

    @property
    def name(self) -> str:
        """Name of the NNI experiment, or of the folder."""
        experiment = self.notes.get("experiment") or {}
        names = [str(experiment[key]) for key in ("name", "id") if experiment.get(key)]
        return f"{names[0]} ({names[1]})" if len(names) > 1 else names[0] if names else real_path(self.folder).name

    @property
    def searches(self) -> list[dict[str, Any]]:
        return list((self.settings.get("searches") or {}).values())

    @cached_property
    def minimised(self) -> str:
        """Minimised metric, such as ``loss``, or ``-top1`` to maximise top-1."""
        return next((str(search["metric"]) for search in self.searches if "metric" in search), "loss")

    @property
    def maximised(self) -> bool:
        """True if larger values of :attr:`metric` are better."""
        return self.minimised.startswith(_NEGATED)

    @cached_property
    def metric(self) -> str:
        """Optimised metric; if it is ``default``, as in NNI trials, the name of another metric with equal values."""
        name = self.minimised.removeprefix(_NEGATED)
        metrics = [e["metrics"] for e in self.evaluations if e["metrics"].get(_UNNAMED) is not None]
        if name != _UNNAMED or not metrics:
            return name
        others = [other for other in metrics[0] if other not in (_UNNAMED, self.minimised)]
        return next((other for other in others if all(row.get(other) == row[_UNNAMED] for row in metrics)), name)

    @property
    def objective(self) -> str:
        """Objective as text, such as ``minimise loss``."""
        return f"{'maximise' if self.maximised else 'minimise'} {self.metric_info(self.metric).title}"

    @property
    def from_supernet(self) -> bool:
        return any((self.notes.get("checkpoint"), *map(self.settings.get, ("checkpoint", "checkpoint_sha256"))))

    @property
    def source(self) -> str:
        """Origin of the metric, such as "evaluated with inherited weights of the supernet"."""
        if self.notes.get("engine"):
            return f"with the result of its {self.notes['engine']} trial"
        if not self.from_supernet:
            return "with the value that the evaluation function of the search returned"
        if self.settings.get("calibration_sha256"):
            return "with the value that a calibration estimates from inherited weights of the supernet"
        return "evaluated with inherited weights of the supernet"

    def metric_info(self, name: str) -> Metric:
        units = self.notes.get("units")
        return metric_named(name, units if isinstance(units, Mapping) else None)

    def value(self, metrics: Mapping[str, Any], name: str | None = None) -> float | None:
        """Return a metric of an evaluation, by default :attr:`metric`; None if it is missing or not finite."""
        name = self.metric if name is None else name
        number = metrics.get(name)
        if number is None and name == self.metric and (negative := metrics.get(self.minimised)) is not None:
            number = -negative if self.maximised else negative
        return None if number is None or not math.isfinite(number) else float(number)

    @property
    def costs(self) -> list[str]:
        """Other objectives; if there are none, costs such as latency and parameters."""
        objectives = [str(name) for name in self.settings.get("objectives", []) if name not in self._searched]
        return objectives or [name for name in UNITS if any(e["metrics"].get(name) for e in self.evaluations)]

    @property
    def others(self) -> list[str]:
        """All other metrics, costs last."""
        names = dict.fromkeys(name for evaluation in self.evaluations for name in evaluation["metrics"])
        return sorted((n for n in names if n not in (*self._searched, *self.costs)), key=lambda name: name in UNITS)

    @property
    def _searched(self) -> tuple[str, ...]:
        return (self.metric, self.minimised.removeprefix(_NEGATED), self.minimised)

    @property
    def space(self) -> SearchSpace | None:
        """Search space; None if ``config.yaml`` does not contain it."""
        content = self.settings.get("space") or {}
        return space_from_dict(content, str(self.folder / "config.yaml")) if "choices" in content else None

    def strategies(self) -> list[str]:
        return list(dict.fromkeys(f"{s['strategy']} (seed {s.get('seed')})" for s in self.searches if "strategy" in s))

    def limits(self, cost: str) -> list[float]:
        """Return the limits of a metric in all searches, ascending."""
        return sorted({float(s["constraints"][cost]) for s in self.searches if cost in s.get("constraints", {})})

    def points(self, cost: str) -> list[tuple[float, float]]:
        """Return (cost, :attr:`metric`) of evaluations that have both."""
        pairs = [(self.value(e["metrics"], cost), self.value(e["metrics"])) for e in self.evaluations]
        return [(x, y) for x, y in pairs if x is not None and y is not None]

    def history(self) -> dict[str, list[float]]:
        """Return search -> values of :attr:`metric`, NaN for failures."""
        series: dict[str, list[float]] = {}
        for evaluation in self.evaluations:
            value = self.value(evaluation["metrics"])
            series.setdefault(str(evaluation["search"]), []).append(math.nan if value is None else value)
        return series


def read_run(folder: str | Path) -> SearchRun:
    """Read a run folder of a search.

    Raises:
        DataError: the folder is missing or damaged, or contains no search.
    """
    folder = Path(folder)
    journal = folder / "journal.jsonl"
    if not journal.exists():
        problem = "contains no search" if folder.is_dir() else "is not a folder"
        raise DataError(f"{folder} {problem}; expected the --out folder of 'nas-ext search' with its journal.jsonl")
    evaluations = read_jsonl(journal)
    if not evaluations:
        raise DataError(f"{journal} contains no evaluation yet; wait for the first one")
    with damaged(folder):
        for evaluation in evaluations:
            evaluation["search"], evaluation["metrics"].items()
            evaluation.setdefault("genes", {})
        file, config = folder / "finalists.json", folder / "config.yaml"
        defaults: dict[str, Any] = {"measured": {}, "best_of": [], "over_limit": [], "genes": {}, "key": ""}
        finalists = [{**defaults, **finalist} for finalist in read_json(file)["finalists"]] if file.exists() else []
        content = read_yaml(config) if config.exists() else {}
        settings, notes = (dict(content.get(section) or {}) for section in ("settings", "notes"))
    return SearchRun(folder, settings, evaluations, finalists, notes, read_sessions(folder))


@contextmanager
def damaged(path: str | Path) -> Iterator[None]:
    """Convert Python errors from a damaged file, or a damaged file in a folder, to `DataError`."""
    try:
        yield
    except NasExtError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} or a file in it is damaged ({type(error).__name__}: {error}); restore it, or give another path"
        ) from error


def limit_label(search: str) -> str:
    """Return a search's displayed name: ``≤ 8 ms, ≤ 2 M parameters`` for ``latency_ms<=8 params_m<=2``."""
    if search == "unlimited":
        return "without a limit"
    limits = [label.partition("<=") for label in search.split()]
    if not all(limit and metric in UNITS for metric, _, limit in limits):
        return search
    return ", ".join(f"≤ {limit} {UNITS[metric]}" for metric, _, limit in limits)


def finalists_table(run: SearchRun, genes: bool = False) -> Table:
    """Return a row per finalist, sorted by cost; ``genes`` adds a column with all genes."""
    rows = []
    others = [name for name in (*run.costs, *run.others) if name not in UNITS]
    first = next(iter(run.costs), run.metric)
    for finalist in sorted(run.finalists, key=lambda f: run.value(f["metrics"], first) or 0.0):
        metrics = finalist["metrics"]
        predicted, measured = run.value(metrics, "latency_ms"), run.value(finalist["measured"], "latency_ms")
        rows.append(
            {
                "architecture": finalist["key"],
                **{name: metrics.get(name) for name in ("params_m", "flops_g", "memory_mb", "cache_mb", *others)},
                "predicted_ms": predicted,
                "measured_ms": measured,
                "off_percent": (predicted / measured - 1) * 100 if predicted and measured else None,
                run.metric: run.value(metrics),
                "best_of": ", ".join(map(limit_label, finalist["best_of"])),
                "over_limit": ", ".join(map(limit_label, finalist["over_limit"])),
                "genes": describe(Architecture(finalist["genes"])) if genes else None,
            }
        )
    named = [run.metric_info(name) for name in (run.metric, *others)]
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
        Column("over_limit", "limit exceeded"),
        Column("genes", "genes"),
    ]
    return Table(columns, rows).without_empty_columns()


def searched_genes(run: SearchRun) -> list[str]:
    """Return the genes with more than one option."""
    if run.space is None:
        return list(dict.fromkeys(name for evaluation in run.evaluations for name in evaluation.get("genes", {})))
    return [choice.name for choice in run.space.choices if any(len(options) > 1 for options in choice.options)]


def differing_genes(run: SearchRun) -> dict[str, str]:
    """Return finalist -> genes that differ between finalists; equal genes are under ``all of them``."""
    searched, genes = searched_genes(run), {finalist["key"]: finalist["genes"] for finalist in run.finalists}
    order = [row["architecture"] for row in finalists_table(run).rows]
    networks = {key: {name: genes[key][name] for name in searched if name in genes[key]} for key in order}
    first = next(iter(networks.values()), {})
    common = {
        name: value
        for name, value in first.items()
        if len(networks) > 1 and all(network.get(name) == value for network in networks.values())
    }
    lines = {"all of them": describe(Architecture(common))} if common else {}
    for key, network in networks.items():
        differing = {name: value for name, value in network.items() if name not in common}
        lines[key] = describe(Architecture(differing)) if differing else "nothing else"
    return lines


def finalists_text(run: SearchRun) -> str:
    """Return the finalists as text for a terminal."""
    files = {finalist["key"]: finalist.get("file", finalist["key"]) for finalist in run.finalists}
    head = "Finalists by file, with the genes that differ:" if len(files) > 1 else "The finalist's file and genes:"
    lines = [f"{run.folder / files[key]}  {genes}" for key, genes in differing_genes(run).items() if key in files]
    return "\n".join([finalists_table(run).text(), *limit_notes(run), head, *lines])


def limit_notes(run: SearchRun) -> list[str]:
    """Return a sentence per search whose best architecture exceeds a limit when measured."""
    notes = []

    def milliseconds(finalist: Mapping[str, Any]) -> float:
        return float(finalist["measured"].get("latency_ms") or 0.0)

    def rank(finalist: Mapping[str, Any]) -> float:
        value = run.value(finalist["metrics"])
        return math.inf if value is None else -value if run.maximised else value

    for name in dict.fromkeys(search for finalist in run.finalists for search in finalist["over_limit"]):
        above = [finalist for finalist in run.finalists if name in finalist["over_limit"]]
        first, closest = min(above, key=rank), min(above, key=milliseconds)
        best = next((finalist for finalist in run.finalists if name in finalist["best_of"]), None)
        if best is None:
            notes.append(
                f"{limit_label(name)}: none of the {len(above)} measured networks is within it, the closest is"
                f" {closest['key']} with {milliseconds(closest):.2f} ms; give a lower limit, or fit the latency model"
                " to more samples"
            )
        else:
            notes.append(
                f"{limit_label(name)}: the best network predicted within the limit, {first['key']}, was measured with"
                f" {milliseconds(first):.2f} ms; the best one measured within it is {best['key']}"
            )
    return notes


_SETTINGS = {"data": "data", "valid_subset": "validation split", "valid_samples": "evaluated examples"}


def facts_of(run: SearchRun) -> dict[str, Any]:
    failed = sum(run.value(evaluation["metrics"]) is None for evaluation in run.evaluations)
    facts: dict[str, Any] = {
        "run folder": str(real_path(run.folder)),
        "started": start_time(run),
        "duration": total_duration(run),
        "machine": machine_of(run),
        "checkpoint": run.notes.get("checkpoint") or run.settings.get("checkpoint"),
        "latency model": run.notes.get("latency_model"),
        "device": ", ".join(str(run.notes[name]) for name in ("device", "device_name") if run.notes.get(name)),
        "precision": run.settings.get("precision"),
        **{label: run.settings.get(name) for name, label in _SETTINGS.items()},
        "objective": run.objective,
        "evaluations": f"{len(run.evaluations)} ({failed} failed)" if failed else len(run.evaluations),
        "searches": ", ".join(map(limit_label, run.history())),
        "by": ", ".join(run.strategies()),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", "None")}


def fingerprints_of(run: SearchRun) -> dict[str, Any]:
    excluded = {*_SETTINGS, "checkpoint", "precision", "latency_model", "device", "device_name"}
    plain = {
        n: v for n, v in {**run.settings, **run.notes}.items() if n not in excluded and isinstance(v, str | int | float)
    }
    return {name.replace("_sha256", " (SHA-256)"): value for name, value in plain.items()}


def start_time(run: SearchRun) -> str:
    """Return the start time to the minute; empty if unknown."""
    if not run.sessions:
        return ""
    return datetime.fromisoformat(run.sessions[0]["started"]).strftime("%Y-%m-%d %H:%M %Z").strip()


def total_duration(run: SearchRun) -> str:
    """Return the total duration of all sessions; empty if unknown."""
    if not run.sessions:
        return ""
    minutes, seconds = divmod(round(sum(session["seconds"] for session in run.sessions)), 60)
    time = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {seconds} s"
    return (time if minutes else f"{seconds} s") + (f" in {len(run.sessions)} runs" if len(run.sessions) > 1 else "")


def machine_of(run: SearchRun) -> str:
    machines = []
    for machine in (session["machine"] for session in run.sessions):
        fields = [
            machine.get("host"),
            machine.get("cpu"),
            f"{machine['cores']} cores" if machine.get("cores") else None,
        ]
        machines.append(", ".join(str(field) for field in fields if field))
    return "; ".join(dict.fromkeys(machines))
