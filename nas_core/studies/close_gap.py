"""Study ``close-gap``: train subnets until they equal networks trained from scratch (Mixture-of-Supernets, Table 6)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest, real_path
from nas_core.files.writing import make_folder, write_json
from nas_core.locks import file_lock
from nas_core.space import Architecture
from nas_core.studies.base import Lines, Measure, Study, StudyResult, Subject, one_space, params_m, same_examples
from nas_core.studies.gap import (
    StandaloneRun,
    add_metric,
    check_examples,
    diverged,
    metric_of,
    named_with_unit,
    read_runs,
    run_warnings,
)
from nas_core.studies.trainings import Training, train_missing
from nas_core.supernet.host import Supernet

_CURVE, _ENDED = "curve.jsonl", "ended.json"

Enough = Callable[[Mapping[str, float]], bool]
"""Function that returns True if metrics are good enough."""
Curve = Mapping[int, Mapping[str, float]]
"""Number of updates -> metrics of a network; 0 for supernet weights."""


@dataclass(frozen=True, kw_only=True)
class CloseGapConfig:
    """Settings of the study ``close-gap``."""

    standalone: Path
    """Results of networks trained from scratch (.jsonl), such as standalone.jsonl of the study gap"""
    architectures: int = 0
    """Number of networks, the first in the file; 0: all"""
    metric: str = "loss"
    """Metric to compare, such as loss or accuracy"""
    every: int = 1000
    """Number of updates between evaluations (paper: 10000)"""
    most_updates: int = 20000
    """Largest number of updates, and length of the learning rate schedule; a multiple of every"""
    train: dict[str, str] = field(default_factory=dict)
    """Training setting that differs from the supernet's, such as lr=1e-4; repeatable"""
    jobs: int = 1
    """Number of simultaneous trainings"""

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.architectures < 0:
            raise ConfigError(
                f"jobs is {self.jobs} and architectures is {self.architectures}; expected at least 1 and 0"
            )
        if self.every < 1 or self.most_updates < 1 or self.most_updates % self.every:
            raise ConfigError(
                f"every is {self.every} and most_updates is {self.most_updates}; expected numbers above 0, with"
                " most_updates a multiple of every"
            )


def train_further(
    subject: Subject, goals: Mapping[Architecture, Enough], folder: Path, config: CloseGapConfig
) -> dict[Architecture, Curve]:
    """Train subnets from supernet weights until each is good enough or has ``config.most_updates`` updates.

    Each training has a folder with its log and metrics. A second call resumes interrupted trainings.

    Args:
        goals: architecture -> function that returns True if metrics are good enough.

    Raises:
        ConfigError: the host does not support further training, or the folder is in use or contains other trainings.
        DataError: a training failed or diverged.
    """
    place = folder / "further" / file_digest(subject.path)[:12]
    make_folder(place)
    settings = {
        "checkpoint": str(real_path(subject.path)),
        "changes": dict(config.train),
        "every": config.every,
        "most_updates": config.most_updates,
        "examples": subject.supernet.examples_key(),
    }
    with file_lock(place / "further.lock", f"is training into {place}", "give another --out"):
        networks = {key: _Network(subject.supernet, key, place / key.key, goals[key], config) for key in goals}
        train_missing(
            place / "settings.json",
            "further training",
            settings,
            subject.supernet,
            [key for key, network in networks.items() if not network.done()],
            lambda key: networks[key].training(),
            config.jobs,
            lambda key, _: networks[key].finish(),
        )
    return {key: network.points for key, network in networks.items()}


def updates_until(enough: Enough, curve: Curve) -> int | None:
    """Return the number of updates after which a network is first good enough; None if it never is."""
    return next((updates for updates, metrics in sorted(curve.items()) if enough(metrics)), None)


_LOCK = threading.Lock()
"""Allows one evaluation at a time, because host frameworks seed global random generators."""


class _Network:
    def __init__(
        self, supernet: Supernet, architecture: Architecture, folder: Path, enough: Enough, config: CloseGapConfig
    ) -> None:
        self.supernet, self.architecture, self.folder = supernet, architecture, folder
        self.enough, self.config = enough, config
        self.points: dict[int, Mapping[str, float]] = {0: supernet.evaluate(architecture)}
        if (folder / _CURVE).exists():
            self.points |= {int(record["updates"]): record["metrics"] for record in read_jsonl(folder / _CURVE)}
        if lacking := {name for metrics in self.points.values() for name in self.points[0].keys() - metrics.keys()}:
            raise DataError(
                f"{folder / _CURVE} lacks metric {', '.join(sorted(lacking))}, and the evaluated networks were deleted;"
                " give another --out"
            )

    def good(self) -> bool:
        return updates_until(self.enough, self.points) is not None

    def done(self) -> bool:
        return self.good() or self.config.most_updates in self.points or (self.folder / _ENDED).exists()

    def training(self) -> Training:
        make_folder(self.folder)
        command = self.supernet.further_command(
            self.architecture, real_path(self.folder), self.config.train, self.config.every, self.config.most_updates
        )
        return Training(command, self.folder, self.evaluate_new)

    def finish(self) -> None:
        if not self.evaluate_new():
            write_json(self.folder / _ENDED, {"updates": max(self.points)})
        for path in self.supernet.kept_networks(self.folder).values():
            path.unlink(missing_ok=True)

    def evaluate_new(self) -> bool:
        # deletes all checkpoints but the latest, which the trainer may still copy
        """Evaluate new checkpoints up to the first that is good enough; return True if there is one."""
        with _LOCK:
            networks = sorted(self.supernet.kept_networks(self.folder).items())
            last = max((path for _, path in networks), key=lambda path: path.stat().st_mtime_ns, default=None)
            for updates, path in networks:
                if self.good():
                    break
                if updates not in self.points and not updates % self.config.every:
                    self._add(updates, self.supernet.evaluate_network(path))
                if path != last:
                    path.unlink(missing_ok=True)
        return self.good()

    def _add(self, updates: int, metrics: Mapping[str, float]) -> None:
        if bad := diverged(metrics):
            raise DataError(
                f"{self.folder}: {bad} after {updates} updates, the training has diverged; give other settings with"
                " --set train.NAME=VALUE, and another --out"
            )
        append_jsonl(self.folder / _CURVE, {"updates": updates, "metrics": dict(metrics)})
        self.points[updates] = dict(metrics)


class _CloseGap(Study):
    name = "close-gap"
    purpose = "Further training until standalone quality (Mixture-of-Supernets, Table 6, Figures 4 to 6)."
    about = (
        "Each subnet is extracted with its inherited weights and trained further by the host's own trainer, with the"
        " settings of its supernet's training under one schedule of the learning rate, until it is as good as the same"
        " network trained from scratch. It is evaluated on the same examples every few updates; update counts are"
        " multiples of that number. In the mean, networks that do not become as good count with all updates of the"
        " schedule, networks that already are with 0. Saved updates are relative to the updates from scratch."
        " After Table 6 and Figures 4 to 6 of Mixture-of-Supernets, where the quality is BLEU."
    )
    config = CloseGapConfig

    def run(self, subjects: Sequence[Subject], config: CloseGapConfig, folder: Path) -> StudyResult:
        space = one_space(subjects)
        same_examples(subjects)
        runs = read_runs(config.standalone, space)
        runs = runs[: config.architectures or len(runs)]
        check_examples(subjects, runs, config.standalone)
        standalone = {run.architecture: metric_of(run.metrics, config.metric, str(config.standalone)) for run in runs}
        add_metric(config.metric, subjects, space.smallest())
        goals = {
            subject.name: {key: _as_good_as(value, subject, config.metric) for key, value in standalone.items()}
            for subject in subjects
        }
        curves = {subject.name: train_further(subject, goals[subject.name], folder, config) for subject in subjects}
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
            _picture(names, standalone, curves, config.metric, label),
            (self.about, *run_warnings(runs)),
            {
                "architectures": {name: key.to_dict() for key, name in names.items()},
                "curves": {
                    supernet: {
                        names[key]: {str(updates): dict(metrics) for updates, metrics in sorted(curve.items())}
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
        reached = updates_until(_as_good_as(standalone, subject, config.metric), curve)
        trained = config.most_updates if reached is None else reached
        rows.append(
            {
                "supernet": subject.name,
                "architecture": name,
                "key": run.architecture.key,
                "params_m": sizes.get(name),
                "standalone": standalone,
                "inherited": curve[0][config.metric],
                "best": best(metrics[config.metric] for metrics in curve.values()),
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
    standalone: Mapping[Architecture, float],
    curves: Mapping[str, Mapping[Architecture, Curve]],
    metric: str,
    label: str,
) -> Lines:
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for architecture, name in names.items():
        panel = panels[f"network {name}"] = {}
        for supernet, of_networks in curves.items():
            points = sorted(of_networks[architecture].items())
            panel[supernet] = ([float(updates) for updates, _ in points], [metrics[metric] for _, metrics in points])
    levels = {f"network {name}": standalone[architecture] for architecture, name in names.items()}
    return Lines(panels, levels, "further updates", label, "trained from scratch")


CLOSE_GAP = _CloseGap()
