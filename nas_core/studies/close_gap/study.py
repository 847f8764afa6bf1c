"""The study ``close-gap``: further updates from inherited to standalone quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.studies.architectures import params_m
from nas_core.studies.base import Study, Subject, one_space, same_examples
from nas_core.studies.close_gap.further import Curve, Enough, Schedule, check_further, train_further
from nas_core.studies.gap.comparison import ask_for, check_examples, doubts, metric_of, named_with_unit
from nas_core.studies.gap.runs import StandaloneRun, read_runs
from nas_core.studies.result import Lines, Measure, StudyResult


@dataclass(frozen=True, kw_only=True)
class CloseGapConfig:
    """Which subnets are trained further, how and for how long.

    Raises:
        ConfigError: a number out of range.
    """

    standalone: Path
    """Results of networks that were trained from scratch (.jsonl), such as standalone.jsonl of the study gap"""
    architectures: int = 0
    """Train only so many of them, the first ones; 0: all"""
    metric: str = "loss"
    """What is compared, by the name that the host gives it"""
    every: int = 1000
    """Updates after which a network is evaluated each time (paper: 10000)"""
    most_updates: int = 20000
    """Updates after which its training ends, over which the learning rate has its schedule; a multiple of every"""
    train: dict[str, str] = field(default_factory=dict)
    """Setting of the further training that is another than the supernet's, by the trainer's name, such as lr=1e-4;
    repeatable"""
    jobs: int = 1
    """Networks that are trained at the same time"""

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.architectures < 0:
            raise ConfigError(
                f"jobs {self.jobs}, architectures {self.architectures}; expected at least 1, and 0 or more"
            )
        _ = self.schedule

    @property
    def schedule(self) -> Schedule:
        """The same as one object."""
        return Schedule(self.every, self.most_updates, self.train)


class _CloseGap(Study):
    name = "close-gap"
    purpose = "Further training until standalone quality (Mixture-of-Supernets, Table 6, Figures 4 to 6)."
    about = (
        "Each subnet is extracted with its inherited weights and trained further by the host's own trainer, with the"
        " settings of its supernet's training under one schedule of the learning rate, until it is as good as the same"
        " network trained from scratch. It is evaluated on the same examples after every so many updates, so that an"
        " update count is exact to that number. In the mean, networks that stay behind count with all updates of the"
        " schedule; those that are as good already count 0. What is saved is compared with the updates from scratch."
        " After Table 6 and Figures 4 to 6 of Mixture-of-Supernets, where the quality is BLEU."
    )
    config = CloseGapConfig

    def run(self, subjects: Sequence[Subject], config: CloseGapConfig, folder: Path) -> StudyResult:
        """Train what is missing, and compare. An interrupted study goes on when it is started again."""
        space = one_space(subjects)
        same_examples(subjects)
        runs = read_runs(config.standalone, space)
        runs = runs[: config.architectures or len(runs)]
        check_examples(subjects, runs, config.standalone)
        alone = {run.architecture: metric_of(run.metrics, config.metric, str(config.standalone)) for run in runs}
        ask_for(config.metric, subjects, space.smallest())
        wanted = {
            subject.name: {each: _as_good_as(value, subject, config.metric) for each, value in alone.items()}
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
            own = _rows(subject, runs, curves[subject.name], config)
            rows += own
            summary.append(_figures(subject.name, own, config.most_updates, summary))
        told = named_with_unit(subjects[0], config.metric)
        names = {run.architecture: str(index) for index, run in enumerate(runs, start=1)}
        return StudyResult(
            (
                Measure("supernet", "supernet"),
                Measure("architecture", "no."),
                Measure("key", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("standalone", f"standalone {told}", ".4f"),
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
            _picture(names, alone, curves, config.metric, told),
            (self.about, *doubts(runs)),
            {
                "architectures": {name: each.to_dict() for each, name in names.items()},
                "curves": {
                    supernet: {
                        names[each]: {str(updates): dict(metrics) for updates, metrics in sorted(curve.points.items())}
                        for each, curve in found.items()
                    }
                    for supernet, found in curves.items()
                },
            },
        )


def _as_good_as(standalone: float, subject: Subject, metric: str) -> Enough:
    if metric in _maximised(subject):
        return lambda metrics: metrics[metric] >= standalone
    return lambda metrics: metrics[metric] <= standalone


def _maximised(subject: Subject) -> Sequence[str]:
    """Metrics that are better the larger they are."""
    return tuple(subject.supernet.maximised)


def _rows(
    subject: Subject, runs: Sequence[StandaloneRun], curves: Mapping[Architecture, Curve], config: CloseGapConfig
) -> list[dict[str, Any]]:
    named = {str(index): run for index, run in enumerate(runs, start=1)}
    sizes = params_m(subject.supernet.space, {name: run.architecture for name, run in named.items()})
    best = max if config.metric in _maximised(subject) else min
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
    """The figures of one supernet, compared with the first of those before."""
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
    told: str,
) -> Lines:
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for each, name in names.items():
        panels[f"network {name}"] = {}
        for supernet, found in curves.items():
            points = sorted(found[each].points.items())
            values = [metrics[metric] for _, metrics in points]
            panels[f"network {name}"][supernet] = ([float(updates) for updates, _ in points], values)
    levels = {f"network {name}": alone[each] for each, name in names.items()}
    return Lines(panels, levels, "further updates", told, "trained from scratch")


CLOSE_GAP = _CloseGap()
