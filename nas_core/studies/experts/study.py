"""The studies ``experts`` and ``router``: how many experts are worth it, and which router mixes them best."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nas_core.errors import ConfigError, DataError, UnsupportedError
from nas_core.layers import MoSConfig
from nas_core.layers.mos import NONE
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.architectures import drawn, params_m
from nas_core.studies.base import Study, Subject, learned_weights, one_space, same_examples
from nas_core.studies.experts.training import check_supernets, experts_of, train_supernets
from nas_core.studies.gap.agreement import FEWEST, agreement
from nas_core.studies.gap.comparison import ask_for, check_examples, doubts, metric_of, named_with_unit
from nas_core.studies.gap.runs import StandaloneRun, read_runs
from nas_core.studies.result import Bars, Measure, StudyResult
from nas_core.supernet.host import Supernet


@dataclass(frozen=True, kw_only=True)
class _Config:
    random: int = 8
    """Random architectures whose mean quality is told, beside the smallest and the largest"""
    seed: int = 0
    """Seed of the random architectures"""
    metric: str = "loss"
    """What is compared, by the name that the host gives it"""
    standalone: Path | None = None
    """Results of networks that were trained from scratch (.jsonl), such as standalone.jsonl of the study gap: error and
    tau are told too"""
    train: dict[str, str] = field(default_factory=dict)
    """Setting of the trainings that is another than the supernet's, by the trainer's name; repeatable. The supernet
    that is there keeps its own"""
    jobs: int = 1
    """Supernets that are trained at the same time"""

    def __post_init__(self) -> None:
        if self.random < 1 or self.jobs < 1 or self.seed < 0:
            raise ConfigError(f"random {self.random}, jobs {self.jobs}, seed {self.seed}; expected at least 1, 1 and 0")


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(_Config):
    """Numbers of experts, and what is told of their supernets.

    Raises:
        ConfigError: a number out of range.
    """

    experts: tuple[int, ...] = (1, 2, 4)
    """Number of experts per layer; repeatable"""


@dataclass(frozen=True, kw_only=True)
class RouterConfig(_Config):
    """Routers, and what is told of their supernets.

    Raises:
        ConfigError: a number out of range.
    """

    layers: tuple[int, ...] = (2, 3, 4)
    """Number of a router's linear layers; repeatable"""
    kind: tuple[str, ...] = ()
    """Kind of router, such as layer or neuron, with each number of layers; repeatable. Default: the supernet's"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if NONE in self.kind:
            raise ConfigError(
                f"kind {NONE} has no experts and so no router; leave it out, or see 'nas-ext lab study experts'"
            )


class _Compared(Study):
    """Supernets that differ from those which are there in one setting of their experts."""

    changed: ClassVar[tuple[Measure, ...]]
    """Fields of :class:`nas_core.layers.MoSConfig` that differ, as columns."""

    @abstractmethod
    def wanted(self, own: MoSConfig, config: Any) -> dict[str, MoSConfig]:
        """The experts to compare by names of folders, those of the supernet that is there among them."""

    def run(self, subjects: Sequence[Subject], config: Any, folder: Path) -> StudyResult:
        """Train what is missing, and compare. An interrupted study goes on when it is started again."""
        space = one_space(subjects)
        same_examples(subjects)
        wanted = {subject.name: self.wanted(experts_of(subject), config) for subject in subjects}
        ask_for(config.metric, subjects, space.smallest())
        runs = _standalone(config, subjects, space)
        named: dict[str, Architecture] = {"smallest": space.smallest(), "largest": space.largest()}
        others = drawn(space, config.random, config.seed, without=list(named.values()))
        named |= {f"random {index}": each for index, each in enumerate(others, start=1)}
        sizes = params_m(space, named)
        for subject in subjects[1:]:  # the first is checked as its training begins
            check_supernets(subject, wanted[subject.name], folder, config.train)
        rows: list[dict[str, Any]] = []
        summary: list[dict[str, Any]] = []
        notes = doubts(runs)
        for subject in subjects:
            trained = train_supernets(subject, wanted[subject.name], folder, config.train, config.jobs)
            notes += _files(subject, [each for each in trained.values() if each is not subject.supernet])
            for name, supernet in trained.items():
                experts = wanted[subject.name][name]
                given = {"supernet": subject.name} | {each.key: getattr(experts, each.key) for each in self.changed}
                quality = {one: _quality(supernet, each, config, subject) for one, each in named.items()}
                rows += [
                    {**given, "architecture": one, "params_m": sizes.get(one), "quality": value}
                    for one, value in quality.items()
                ]
                summary.append({**given, **_figures(supernet, quality), **_gap(supernet, runs, config, subject)})
                summary[-1]["trained"] = "here" if supernet is not subject.supernet else "before"
        return self._result(subjects, config, rows, summary, notes, named)

    def _result(
        self,
        subjects: Sequence[Subject],
        config: Any,
        rows: list[dict[str, Any]],
        summary: list[dict[str, Any]],
        notes: Sequence[str],
        named: Mapping[str, Architecture],
    ) -> StudyResult:
        told = named_with_unit(subjects[0], config.metric)
        first = (Measure("supernet", "supernet"), *self.changed)
        labels = [" ".join(str(row[each.key]) for each in first[len(subjects) == 1 :]) for row in summary]
        series = {
            what: {label: row[what] for label, row in zip(labels, summary, strict=True)}
            for what in ("smallest", "largest", "mean")
        }
        return StudyResult(
            (
                *first,
                Measure("architecture", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("quality", f"inherited {told}", ".4f"),
            ),
            rows,
            (
                *first,
                Measure("trained", "trained"),
                Measure("parameters_m", "M parameters in all", ".3f"),
                Measure("smallest", f"{told} of the smallest", ".4f"),
                Measure("largest", "of the largest", ".4f"),
                Measure("mean", f"mean of {len(named) - 2} random", ".4f"),
                Measure("error", "error", ".4f"),
                Measure("tau", "Kendall's tau", ".3f"),
            ),
            summary,
            Bars(series, f"inherited {told}, by {', '.join(each.header for each in self.changed)}"),
            (self.about, *notes),
            {"architectures": {name: each.to_dict() for name, each in named.items()}},
        )


class _Experts(_Compared):
    name = "experts"
    purpose = "Supernets with fewer or more experts (Mixture-of-Supernets, Table 14)."
    about = (
        "Supernets that differ from the given one in the number of experts alone are trained by the host's own trainer"
        " with the settings of its training, from its seed; it is taken as it is. All are asked for the same"
        " architectures on the same examples. Parameters are those of the whole supernet, routers included. After Table"
        " 14 of Mixture-of-Supernets, which tells BLEU of one large architecture and the memory of a GPU."
    )
    config = ExpertsConfig
    changed = (Measure("experts", "experts", "d"),)

    def wanted(self, own: MoSConfig, config: ExpertsConfig) -> dict[str, MoSConfig]:
        """The supernet with each number of experts."""
        return {
            f"experts-{count}": replace(own, experts=count, rank=own.rank if count > 1 else 0)
            for count in sorted({own.experts, *config.experts})
        }


class _Router(_Compared):
    name = "router"
    purpose = "Supernets with other routers (Mixture-of-Supernets, Table 13)."
    about = (
        "Supernets that differ from the given one in their routers alone are trained by the host's own trainer with the"
        " settings of its training, from its seed; it is taken as it is. All are asked for the same architectures on"
        " the same examples. Layers are the linear layers of a router. After Table 13 of Mixture-of-Supernets, where"
        " two are best."
    )
    config = RouterConfig
    changed = (Measure("kind", "router"), Measure("router_layers", "layers", "d"))

    def wanted(self, own: MoSConfig, config: RouterConfig) -> dict[str, MoSConfig]:
        """The supernet with each kind and each number of layers."""
        every = {replace(own, kind=kind, router_layers=n) for kind in config.kind or [own.kind] for n in config.layers}
        ordered = sorted({own, *every}, key=lambda each: (each.kind, each.router_layers))
        return {f"{each.kind}-{each.router_layers}": each for each in ordered}


def _standalone(config: Any, subjects: Sequence[Subject], space: SearchSpace) -> list[StandaloneRun]:
    if config.standalone is None:
        return []
    runs = read_runs(config.standalone, space)
    check_examples(subjects, runs, config.standalone)
    if len(runs) < FEWEST:
        raise DataError(f"{len(runs)} standalone networks; expected at least {FEWEST} for a rank correlation")
    for run in runs:
        metric_of(run.metrics, config.metric, str(config.standalone))
    return runs


def _files(subject: Subject, trained: Sequence[Any]) -> list[str]:
    """A sentence about the checkpoints of the supernets that were trained here, where hosts name them."""
    files = sorted({each.path.name for each in trained if isinstance(getattr(each, "path", None), Path)})
    if not files:
        return []
    told = f"Of what was trained beside {subject.path.name}, {', '.join(files)} is compared with it"
    if files != [subject.path.name]:
        return [f"{told}: the two may be of different moments of a training."]
    return [f"{told}."]


def _quality(supernet: Supernet, architecture: Architecture, config: Any, subject: Subject) -> float:
    return metric_of(supernet.evaluate(architecture), config.metric, str(subject.path))


def _figures(supernet: Supernet, quality: Mapping[str, float]) -> dict[str, Any]:
    """The row of one supernet."""
    try:
        count = sum(each.numel() for each in learned_weights(supernet.network)) / 1e6
    except UnsupportedError:
        count = None
    random = [value for name, value in quality.items() if name.startswith("random")]
    ends = {name: quality[name] for name in ("smallest", "largest")}
    return {"parameters_m": count, **ends, "mean": float(np.mean(random)) if random else None}


def _gap(supernet: Supernet, runs: Sequence[StandaloneRun], config: Any, subject: Subject) -> dict[str, float]:
    """Error and tau against networks from scratch, where there are some."""
    if not runs:
        return {}
    inherited = [_quality(supernet, run.architecture, config, subject) for run in runs]
    found = agreement(inherited, [run.metrics[config.metric] for run in runs])
    return {"error": found.error, "tau": found.tau}


EXPERTS = _Experts()
ROUTER = _Router()
