"""A search's run folder, read back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError
from nas_core.files import MOST_OWN_TEXT, read_json, read_jsonl, read_yaml, real_path
from nas_core.report.tables import Column, Table, describe
from nas_core.search.engine import GIVEN
from nas_core.search.metrics import Metric, metric_named
from nas_core.search.sessions import read_sessions
from nas_core.space import Architecture, SearchSpace, space_from_dict

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
    if not evaluations:
        raise DataError(f"{journal} holds no evaluation yet; wait for the first ones")
    with damaged(folder):
        for evaluation in evaluations:
            evaluation["search"], evaluation["metrics"].items()
            evaluation.setdefault("genes", {})
        file, config = folder / "finalists.json", folder / "config.yaml"
        defaults: dict[str, Any] = {"measured": {}, "best_of": [], "over_limit": [], "genes": {}, "key": ""}
        finalists = [{**defaults, **finalist} for finalist in read_json(file)["finalists"]] if file.exists() else []
        content = read_yaml(config, MOST_OWN_TEXT) if config.exists() else {}
        settings, notes = (dict(content.get(part) or {}) for part in ("settings", "notes"))
    return SearchRun(folder, settings, evaluations, finalists, notes, read_sessions(folder))


@contextmanager
def damaged(folder: str | Path) -> Iterator[None]:
    """Report what damaged or edited files of a run folder cause as one error.

    Raises:
        DataError: instead of the errors of Python that content of another form raises.
    """
    try:
        yield
    except NasExtError:
        raise
    except (AttributeError, KeyError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise DataError(
            f"a file of {folder} is not as a search writes it ({type(error).__name__}: {error}); restore it, or give"
            " the folder of another run"
        ) from error


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


def searched_genes(run: SearchRun) -> list[str]:
    """Genes with more than one option, in the order of the space; all that there are where the space is not told.

    Raises:
        SpaceError: what the run's settings hold is no space.
    """
    if run.space is None:
        return list(dict.fromkeys(name for one in run.evaluations for name in one.get("genes", {})))
    return [choice.name for choice in run.space.choices if any(len(options) > 1 for options in choice.options)]


def fixed_genes(run: SearchRun) -> dict[str, Any]:
    """Genes that all networks of the space share, with their values."""
    searched = set(searched_genes(run))
    genes = next((one.get("genes") or {} for one in run.evaluations), {})
    return {name: value for name, value in genes.items() if name not in searched}


def told_apart(genes: Mapping[str, Mapping[str, Any]], searched: Sequence[str]) -> dict[str, str]:
    """Title -> what sets that network apart, in one line; under ``all of them`` what they have in common.

    Args:
        genes: title -> genes of one network.
        searched: names of the genes that count.
    """
    networks = {title: {n: one[n] for n in searched if n in one} for title, one in genes.items()}
    first = next(iter(networks.values()), {})
    common = {n: value for n, value in first.items() if all(one.get(n) == value for one in networks.values())}
    if len(networks) < 2:
        common = {}
    lines = {"all of them": describe(Architecture(common))} if common else {}
    for title, one in networks.items():
        rest = {name: value for name, value in one.items() if name not in common}
        lines[title] = describe(Architecture(rest)) if rest else "nothing else"
    return lines


def finalists_text(run: SearchRun) -> str:
    """Return the finalists for a terminal: their metrics, what measurements say about the limits, and the file of each
    with the genes that set it apart.

    Raises:
        SpaceError: what the run's settings hold is no space.
    """
    table = finalists_table(run)
    known = {finalist["key"]: finalist for finalist in run.finalists}
    listed = {row["architecture"]: known[row["architecture"]]["genes"] for row in table.rows}
    apart = told_apart(listed, searched_genes(run))
    head = "Finalists by file, with the genes that differ:" if len(listed) > 1 else "The finalist's file and genes:"
    files = [f"{run.folder / known[key].get('file', key)}  {apart[key]}" for key in listed]
    return "\n".join([table.text(), *limit_notes(run), head, *files])


def limit_notes(run: SearchRun) -> list[str]:
    """A sentence for each search whose best architecture by prediction was measured above a limit: which one is taken
    instead, or that none was found within it."""
    notes = []
    for name in dict.fromkeys(search for finalist in run.finalists for search in finalist["over_limit"]):
        above = [finalist for finalist in run.finalists if name in finalist["over_limit"]]
        first = min(above, key=lambda finalist: _rank(run, finalist))
        best = next((finalist for finalist in run.finalists if name in finalist["best_of"]), None)
        label, count = limit_label(name), f"{len(above)} measured"
        if best is None:
            closest = min(above, key=_measured_ms)
            notes.append(
                f"{label}: none of {count} was within it, the closest is {closest['key']} with"
                f" {_measured_ms(closest):.2f} ms; give a lower limit, or fit the latency model to more samples"
            )
        else:
            notes.append(
                f"{label}: {first['key']}, the best by prediction, was measured above it with {_measured_ms(first):.2f}"
                f" ms; {best['key']} is the best of those measured within it"
            )
    return notes


def _rank(run: SearchRun, finalist: Mapping[str, Any]) -> float:
    value = run.value(finalist["metrics"])
    return math.inf if value is None else -value if run.maximised else value


def _measured_ms(finalist: Mapping[str, Any]) -> float:
    return float(finalist["measured"].get("latency_ms") or 0.0)


_FACTS = ("checkpoint", "latency_model", "device", "device_name")
_SETTINGS = {"data": "data", "valid_subset": "validation split", "valid_sentences": "of it, evaluated"}


def facts_of(run: SearchRun) -> dict[str, Any]:
    """For people, in the order in which they ask."""
    failed = sum(run.value(evaluation["metrics"]) is None for evaluation in run.evaluations)
    facts: dict[str, Any] = {
        "run folder": str(real_path(run.folder)),
        "started": started(run),
        "duration": took(run),
        "machine": machine_of(run),
        "checkpoint": run.notes.get("checkpoint") or run.settings.get("checkpoint"),
        "latency model": run.notes.get("latency_model"),
        "device": ", ".join(str(run.notes[name]) for name in ("device", "device_name") if run.notes.get(name)),
        "precision": run.settings.get("precision"),
        **{shown: run.settings.get(name) for name, shown in _SETTINGS.items()},
        "objective": run.objective,
        "evaluations": f"{len(run.evaluations)} ({failed} failed)" if failed else len(run.evaluations),
        "searches": ", ".join(map(limit_label, (name for name in run.history() if name != GIVEN))),
        "by": ", ".join(run.strategies()),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", "None")}


def fingerprints_of(run: SearchRun) -> dict[str, Any]:
    """For machines, and for those who compare: fingerprints, versions and whatever else the run says of itself."""
    shown = {*_SETTINGS, "checkpoint", "precision"}
    settings = {name: value for name, value in run.settings.items() if name not in shown}
    notes = {name: value for name, value in run.notes.items() if name not in _FACTS}
    plain = {name: value for name, value in {**settings, **notes}.items() if isinstance(value, str | int | float)}
    return {name.replace("_sha256", " (SHA-256)"): value for name, value in plain.items()}


def started(run: SearchRun) -> str:
    """The day and the minute at which it first evaluated, where that is known."""
    if not run.sessions:
        return ""
    try:
        when = datetime.fromisoformat(run.sessions[0]["started"])
    except ValueError:
        return ""
    return when.strftime("%Y-%m-%d %H:%M %Z").strip()


def took(run: SearchRun) -> str:
    """All its runs together."""
    if not run.sessions:
        return ""
    runs = f" in {len(run.sessions)} runs" if len(run.sessions) > 1 else ""
    return _time(sum(session["seconds"] for session in run.sessions)) + runs


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def machine_of(run: SearchRun) -> str:
    """The machines it ran on, each once."""
    told = []
    for session in run.sessions:
        machine = session["machine"]
        parts = [machine.get("host"), machine.get("cpu"), f"{machine['cores']} cores" if machine.get("cores") else None]
        told.append(", ".join(str(part) for part in parts if part))
    return "; ".join(dict.fromkeys(told))
