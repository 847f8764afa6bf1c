"""Study ``close-gap``: further updates from inherited to standalone quality (Mixture-of-Supernets, Table 6)."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest, real_path
from nas_core.files.writing import make_folder, write_json
from nas_core.locks import only_process
from nas_core.space import Architecture
from nas_core.studies.base import Lines, Measure, Study, StudyResult, Subject, one_space, params_m, same_examples
from nas_core.studies.gap import (
    StandaloneRun,
    ask_for,
    check_examples,
    diverged,
    metric_of,
    named_with_unit,
    read_runs,
    run_warnings,
)
from nas_core.studies.trainings import LOG, Training, check_settings, train_all

_CURVE, _ENDED = "curve.jsonl", "ended.json"

Enough = Callable[[Mapping[str, float]], bool]
"""Function that returns True for metrics that are good enough."""


@dataclass(frozen=True)
class Schedule:
    """Schedule of further training."""

    every: int
    """Updates between evaluations."""
    most: int
    """Largest number of updates; length of the learning rate schedule."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Settings that differ from the supernet's."""

    def __post_init__(self) -> None:
        if self.every < 1 or self.most < 1 or self.most % self.every:
            raise ConfigError(
                f"every {self.every}, most updates {self.most}; expected numbers above 0, the second a multiple of the"
                " first"
            )


@dataclass(frozen=True)
class Curve:
    """Metrics of a network over further updates."""

    points: Mapping[int, Mapping[str, float]]
    """Updates -> metrics; 0: inherited weights."""

    def reached(self, enough: Enough) -> int | None:
        """Return the number of updates until it was first good enough, or None."""
        return next((updates for updates, metrics in sorted(self.points.items()) if enough(metrics)), None)


def train_further(
    subject: Subject,
    wanted: Mapping[Architecture, Enough],
    folder: Path,
    schedule: Schedule,
    jobs: int = 1,
) -> dict[Architecture, Curve]:
    """Train subnets from inherited weights until each is good enough, at most for the whole schedule.

    Each has a folder with its training log and curve. A second call continues interrupted trainings.

    Args:
        wanted: subnet -> function that returns True for metrics that are good enough.

    Raises:
        ConfigError: the host does not support further training, or the folder is in use or holds other runs.
        DataError: a training failed or diverged.
    """
    supernet, place = subject.supernet, _folder(subject, folder)
    make_folder(place)
    with only_process(place / "further.lock", f"is training into {place}", "give another --out"):
        _check_settings(subject, place, schedule)
        networks = {key: _Network(supernet, key, place / key.key, enough, schedule) for key, enough in wanted.items()}
        missing = {key: network for key, network in networks.items() if not network.done()}
        if missing:
            settings = _check_settings(subject, place, schedule, supernet.training_data())
            trainings = {key: network.training() for key, network in missing.items()}
            write_json(place / "settings.json", {"checkpoint": str(real_path(subject.path)), **settings})
            train_all(trainings, jobs, lambda key, _: missing[key].finish())
    return {key: Curve(network.points) for key, network in networks.items()}


def check_further(subject: Subject, wanted: Mapping[Architecture, Enough], folder: Path, schedule: Schedule) -> None:
    """Raise the errors of :func:`train_further` without training."""
    supernet, place = subject.supernet, _folder(subject, folder)
    _check_settings(subject, place, schedule)
    for architecture, enough in wanted.items():
        network = _Network(supernet, architecture, place / architecture.key, enough, schedule)
        if not network.done():
            _check_settings(subject, place, schedule, supernet.training_data())
            with tempfile.TemporaryDirectory() as name:
                network.command(Path(name))
            return


def _folder(subject: Subject, folder: Path) -> Path:
    return folder / "further" / file_digest(subject.path)[:12]


def _check_settings(
    subject: Subject, place: Path, schedule: Schedule, data: Mapping[str, str] | None = None
) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "changes": dict(schedule.changes),
        "every": schedule.every,
        "most_updates": schedule.most,
        "examples": subject.supernet.examples_key(),
    }
    if data is not None:
        settings["data"] = dict(data)
    if any(place.glob(f"*/{LOG}")):  # else these settings trained nothing
        check_settings(place / "settings.json", settings, "further training")
    return settings


_LOCK = threading.Lock()
"""Networks are evaluated one at a time: hosts seed the random numbers of the whole process."""


class _Network:
    def __init__(
        self, trainer: Any, architecture: Architecture, folder: Path, enough: Enough, schedule: Schedule
    ) -> None:
        self.trainer, self.architecture, self.folder = trainer, architecture, folder
        self.enough, self.schedule = enough, schedule
        self.points: dict[int, Mapping[str, float]] = {0: trainer.evaluate(architecture)}
        if (folder / _CURVE).exists():
            self.points |= {int(record["updates"]): record["metrics"] for record in read_jsonl(folder / _CURVE)}
        if lacking := {name for metrics in self.points.values() for name in self.points[0].keys() - metrics.keys()}:
            raise DataError(
                f"{folder / _CURVE}: its networks were evaluated without {', '.join(sorted(lacking))}, and are deleted;"
                " give another --out for this metric"
            )

    def good(self) -> bool:
        return Curve(self.points).reached(self.enough) is not None

    def done(self) -> bool:
        return self.good() or self.schedule.most in self.points or (self.folder / _ENDED).exists()

    def training(self) -> Training:
        make_folder(self.folder)
        return Training(self.command(real_path(self.folder)), self.folder, self.look)

    def command(self, folder: Path) -> Sequence[str]:
        schedule = self.schedule
        command: Sequence[str] = self.trainer.further_command(
            self.architecture, folder, schedule.changes, schedule.every, schedule.most
        )
        return command

    def finish(self) -> None:
        if not self.look():
            write_json(self.folder / _ENDED, {"updates": max(self.points)})
        for path in self.trainer.kept_networks(self.folder).values():
            path.unlink(missing_ok=True)

    def look(self) -> bool:
        """Evaluate new networks up to the first that is good enough; return whether there is one.

        All but the latest file, which the trainer may still copy, are deleted.
        """
        with _LOCK:
            kept = sorted(self.trainer.kept_networks(self.folder).items())
            last = max((path for _, path in kept), key=lambda path: path.stat().st_mtime_ns, default=None)
            for updates, path in kept:
                if self.good():
                    break
                if updates not in self.points and not updates % self.schedule.every:
                    self._add(updates, self.trainer.evaluate_network(path))
                if path != last:
                    path.unlink(missing_ok=True)
        return self.good()

    def _add(self, updates: int, metrics: Mapping[str, float]) -> None:
        if bad := diverged(metrics):
            raise DataError(
                f"{self.folder}: {bad} after {updates} further updates, so that the training has diverged; give other"
                " settings with --set train.NAME=VALUE, and another --out"
            )
        append_jsonl(self.folder / _CURVE, {"updates": updates, "metrics": dict(metrics)})
        self.points[updates] = dict(metrics)


@dataclass(frozen=True, kw_only=True)
class CloseGapConfig:
    """Settings of the study ``close-gap``."""

    standalone: Path
    """Results of standalone networks (.jsonl), such as standalone.jsonl of the study gap"""
    architectures: int = 0
    """Number of trained networks, from the first; 0: all"""
    metric: str = "loss"
    """Compared metric, by the host's name"""
    every: int = 1000
    """Updates between evaluations (paper: 10000)"""
    most_updates: int = 20000
    """Largest number of updates, the length of the learning rate schedule; a multiple of every"""
    train: dict[str, str] = field(default_factory=dict)
    """Setting of the further training that differs from the supernet's, such as lr=1e-4; repeatable"""
    jobs: int = 1
    """Number of simultaneous trainings"""

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.architectures < 0:
            raise ConfigError(
                f"jobs {self.jobs}, architectures {self.architectures}; expected at least 1, and 0 or more"
            )
        _ = self.schedule

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.every, self.most_updates, self.train)


class _CloseGap(Study):
    name = "close-gap"
    purpose = "Further training until standalone quality (Mixture-of-Supernets, Table 6, Figures 4 to 6)."
    about = (
        "Each subnet is extracted with its inherited weights and trained further by the host's own trainer, with the"
        " settings of its supernet's training under one schedule of the learning rate, until it is as good as the same"
        " network trained from scratch. It is evaluated on the same examples every few updates, so that an"
        " update count is exact to that number. In the mean, networks that stay behind count with all updates of the"
        " schedule; those that are as good already count 0. What is saved is compared with the updates from scratch."
        " After Table 6 and Figures 4 to 6 of Mixture-of-Supernets, where the quality is BLEU."
    )
    config = CloseGapConfig

    def run(self, subjects: Sequence[Subject], config: CloseGapConfig, folder: Path) -> StudyResult:
        space = one_space(subjects)
        same_examples(subjects)
        runs = read_runs(config.standalone, space)
        runs = runs[: config.architectures or len(runs)]
        check_examples(subjects, runs, config.standalone)
        alone = {run.architecture: metric_of(run.metrics, config.metric, str(config.standalone)) for run in runs}
        ask_for(config.metric, subjects, space.smallest())
        wanted = {
            subject.name: {key: _as_good_as(value, subject, config.metric) for key, value in alone.items()}
            for subject in subjects
        }
        for subject in subjects[1:]:  # the first is checked as its training begins
            check_further(subject, wanted[subject.name], folder, config.schedule)
        curves = {
            subject.name: train_further(subject, wanted[subject.name], folder, config.schedule, config.jobs)
            for subject in subjects
        }
        rows: list[dict[str, Any]] = []
        summary: list[dict[str, Any]] = []
        for subject in subjects:
            of_subject = _rows(subject, runs, curves[subject.name], config)
            rows += of_subject
            summary.append(_figures(subject.name, of_subject, config.most_updates, summary))
        label = named_with_unit(subjects[0], config.metric)
        names = {run.architecture: str(index) for index, run in enumerate(runs, start=1)}
        return StudyResult(
            (
                Measure("supernet", "supernet"),
                Measure("architecture", "no."),
                Measure("key", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("standalone", f"standalone {label}", ".4f"),
                Measure("inherited", "inherited", ".4f"),
                Measure("best", "best", ".4f"),
                Measure("updates", "further updates", "d"),
                Measure("saved", "updates saved", ".1%"),
            ),
            rows,
            (
                Measure("supernet", "supernet"),
                Measure("architectures", "networks", "d"),
                Measure("updates", "mean further updates", ".0f"),
                Measure("better", "less than the first", ".1%"),
                Measure("reached", "reached standalone", ".0%"),
                Measure("saved", "updates saved", ".1%"),
            ),
            summary,
            _picture(names, alone, curves, config.metric, label),
            (self.about, *run_warnings(runs)),
            {
                "architectures": {name: key.to_dict() for key, name in names.items()},
                "curves": {
                    supernet: {
                        names[key]: {str(updates): dict(metrics) for updates, metrics in sorted(curve.points.items())}
                        for key, curve in of_networks.items()
                    }
                    for supernet, of_networks in curves.items()
                },
            },
        )


def _as_good_as(standalone: float, subject: Subject, metric: str) -> Enough:
    if metric in subject.supernet.maximised:
        return lambda metrics: metrics[metric] >= standalone
    return lambda metrics: metrics[metric] <= standalone


def _rows(
    subject: Subject, runs: Sequence[StandaloneRun], curves: Mapping[Architecture, Curve], config: CloseGapConfig
) -> list[dict[str, Any]]:
    named = {str(index): run for index, run in enumerate(runs, start=1)}
    sizes = params_m(subject.supernet.space, {name: run.architecture for name, run in named.items()})
    best = max if config.metric in subject.supernet.maximised else min
    rows = []
    for name, run in named.items():
        curve, standalone = curves[run.architecture], run.metrics[config.metric]
        reached = curve.reached(_as_good_as(standalone, subject, config.metric))
        trained = config.most_updates if reached is None else reached
        rows.append(
            {
                "supernet": subject.name,
                "architecture": name,
                "key": run.architecture.key,
                "params_m": sizes.get(name),
                "standalone": standalone,
                "inherited": curve.points[0][config.metric],
                "best": best(metrics[config.metric] for metrics in curve.points.values()),
                "updates": reached,
                "standalone_updates": run.updates,
                "saved": 1 - trained / run.updates if run.updates else None,
            }
        )
    return rows


def _figures(
    name: str, rows: Sequence[Mapping[str, Any]], most: int, before: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    updates = sum(most if row["updates"] is None else row["updates"] for row in rows) / len(rows)
    saved = [row["saved"] for row in rows if row["saved"] is not None]
    return {
        "supernet": name,
        "architectures": len(rows),
        "updates": updates,
        "better": 1 - updates / before[0]["updates"] if before and before[0]["updates"] else None,
        "reached": sum(row["updates"] is not None for row in rows) / len(rows),
        "saved": sum(saved) / len(saved) if len(saved) == len(rows) else None,
    }


def _picture(
    names: Mapping[Architecture, str],
    alone: Mapping[Architecture, float],
    curves: Mapping[str, Mapping[Architecture, Curve]],
    metric: str,
    label: str,
) -> Lines:
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for architecture, name in names.items():
        panel = panels[f"network {name}"] = {}
        for supernet, of_networks in curves.items():
            points = sorted(of_networks[architecture].points.items())
            panel[supernet] = ([float(updates) for updates, _ in points], [metrics[metric] for _, metrics in points])
    levels = {f"network {name}": alone[architecture] for architecture, name in names.items()}
    return Lines(panels, levels, "further updates", label, "trained from scratch")


CLOSE_GAP = _CloseGap()
