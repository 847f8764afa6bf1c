"""Studies ``experts`` and ``router``: train supernets with other experts or routers (Mixture-of-Supernets, Tables 13,
14).
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nas_core.errors import ConfigError, UnsupportedError
from nas_core.files.reading import file_digest, real_path
from nas_core.files.writing import make_folder, write_json
from nas_core.layers import MoSConfig
from nas_core.layers.mos import NONE
from nas_core.locks import file_lock
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.base import (
    Bars,
    Measure,
    Study,
    StudyResult,
    Subject,
    drawn,
    learned_weights,
    one_space,
    params_m,
    same_examples,
    to_dicts,
)
from nas_core.studies.gap import (
    StandaloneRun,
    add_metric,
    agreement,
    check_examples,
    metric_of,
    named_with_unit,
    read_runs,
    run_warnings,
)
from nas_core.studies.trainings import Training, train_missing
from nas_core.supernet.host import Supernet

_TRAINED = "trained.json"


def experts_of(subject: Subject) -> MoSConfig:
    experts = subject.supernet.experts
    if experts.kind == NONE:
        raise ConfigError(f"{subject.path} has no experts; give a supernet that was trained with --mos")
    return experts


def train_supernets(
    subject: Subject, settings_by_name: Mapping[str, MoSConfig], folder: Path, changes: Mapping[str, str], jobs: int = 1
) -> dict[str, Supernet]:
    """Train supernets that differ from a given one only in their experts; for equal experts, return the given one.

    Each training has a folder with its log. A second call resumes interrupted trainings.

    Args:
        settings_by_name: folder name -> settings of the experts.
        changes: training settings that differ from the supernet's.

    Raises:
        ConfigError: the supernet has no experts, or the folder is in use or contains other supernets.
        DataError: a training failed.
    """
    experts, trainer = experts_of(subject), subject.supernet
    place = folder / "supernets" / file_digest(subject.path)[:12]
    make_folder(place)
    folders = {name: place / name for name, other in settings_by_name.items() if other != experts}

    def training_of(name: str) -> Training:
        make_folder(folders[name])
        return Training(
            trainer.supernet_command(real_path(folders[name]), settings_by_name[name], changes), folders[name]
        )

    def finished(name: str, seconds: float) -> None:
        record = {"experts": asdict(settings_by_name[name]), "seconds": round(seconds, 2), "ended": time.time()}
        write_json(folders[name] / _TRAINED, record)

    with file_lock(place / "supernets.lock", f"is training into {place}", "give another --out"):
        missing = [name for name, path in folders.items() if not (path / _TRAINED).exists()]
        settings = {"checkpoint": str(real_path(subject.path)), "changes": dict(changes)}
        train_missing(place / "settings.json", "supernets", settings, trainer, missing, training_of, jobs, finished)
    return {name: trainer.trained_supernet(folders[name]) if name in folders else trainer for name in settings_by_name}


@dataclass(frozen=True, kw_only=True)
class _Config:
    random: int = 8
    """Number of random architectures, in addition to the smallest and the largest"""
    seed: int = 0
    """Seed of the random architectures"""
    metric: str = "loss"
    """Metric to compare, such as loss or accuracy"""
    standalone: Path | None = None
    """Results of networks trained from scratch (.jsonl, such as standalone.jsonl of the study gap), for error and tau
    """
    train: dict[str, str] = field(default_factory=dict)
    """Training setting that differs from the supernet's; repeatable"""
    jobs: int = 1
    """Number of simultaneous trainings"""

    def __post_init__(self) -> None:
        if self.random < 1 or self.jobs < 1 or self.seed < 0:
            raise ConfigError(
                f"random is {self.random}, jobs is {self.jobs}, seed is {self.seed}; expected at least 1, 1 and 0"
            )


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(_Config):
    """Settings of the study ``experts``."""

    experts: tuple[int, ...] = (1, 2, 4)
    """Number of experts per layer; repeatable"""


@dataclass(frozen=True, kw_only=True)
class RouterConfig(_Config):
    """Settings of the study ``router``."""

    layers: tuple[int, ...] = (2, 3, 4)
    """Number of linear layers of a router; repeatable"""
    kind: tuple[str, ...] = ()
    """Kind of router, such as layer or neuron; repeatable; default: the supernet's"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if NONE in self.kind:
            raise ConfigError(
                f"setting kind contains {NONE!r}, a network without experts and router; leave it out, or compare"
                " numbers of experts with 'nas-ext lab study experts'"
            )


class _Compared(Study):
    """Comparison of supernets with other experts or routers."""

    changed: ClassVar[tuple[Measure, ...]]
    """Table columns for the fields of :class:`nas_core.layers.MoSConfig` that differ."""

    @abstractmethod
    def wanted(self, own: MoSConfig, config: Any) -> dict[str, MoSConfig]:
        """Return folder name -> settings of the experts, including the given supernet's."""

    def run(self, subjects: Sequence[Subject], config: Any, folder: Path) -> StudyResult:
        space = one_space(subjects)
        same_examples(subjects)
        settings = {subject.name: self.wanted(experts_of(subject), config) for subject in subjects}
        add_metric(config.metric, subjects, space.smallest())
        runs = _standalone(config, subjects, space)
        named: dict[str, Architecture] = {"smallest": space.smallest(), "largest": space.largest()}
        others = drawn(space, config.random, config.seed, without=list(named.values()))
        named |= {f"random {index}": other for index, other in enumerate(others, start=1)}
        sizes = params_m(space, named)
        rows: list[dict[str, Any]] = []
        summary: list[dict[str, Any]] = []
        notes = run_warnings(runs)
        for subject in subjects:
            trained = train_supernets(subject, settings[subject.name], folder, config.train, config.jobs)
            notes += _files(subject, [other for other in trained.values() if other is not subject.supernet])
            for name, supernet in trained.items():
                experts = settings[subject.name][name]
                head = {"supernet": subject.name} | {c.key: getattr(experts, c.key) for c in self.changed}
                quality = {
                    key: _quality(supernet, architecture, config, subject) for key, architecture in named.items()
                }
                rows += [
                    {**head, "architecture": key, "params_m": sizes.get(key), "quality": value}
                    for key, value in quality.items()
                ]
                summary.append({**head, **_figures(supernet, quality), **_gap(supernet, runs, config, subject)})
                summary[-1]["trained"] = "here" if supernet is not subject.supernet else "before"
        label = named_with_unit(subjects[0], config.metric)
        first = (Measure("supernet", "supernet"), *self.changed)
        labels = [" ".join(str(row[column.key]) for column in first[len(subjects) == 1 :]) for row in summary]
        series = {
            figure: {name: row[figure] for name, row in zip(labels, summary, strict=True)}
            for figure in ("smallest", "largest", "mean")
        }
        return StudyResult(
            (
                *first,
                Measure("architecture", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("quality", f"inherited {label}", ".4f"),
            ),
            rows,
            (
                *first,
                Measure("trained", "trained"),
                Measure("parameters_m", "M parameters in all", ".3f"),
                Measure("smallest", f"{label} of the smallest", ".4f"),
                Measure("largest", "of the largest", ".4f"),
                Measure("mean", f"mean of {len(named) - 2} random", ".4f"),
                Measure("error", "error", ".4f"),
                Measure("tau", "Kendall's tau", ".3f"),
            ),
            summary,
            Bars(series, f"inherited {label}, by {', '.join(column.header for column in self.changed)}"),
            (self.about, *notes),
            {"architectures": to_dicts(named)},
        )


class _Experts(_Compared):
    name = "experts"
    purpose = "Supernets with fewer or more experts (Mixture-of-Supernets, Table 14)."
    about = (
        "Supernets that differ from the given one in the number of experts are trained by the host's own trainer with"
        " the settings and seed of its training; the given one is not trained again. All are evaluated with the same"
        " architectures on the same examples. Parameters are those of the whole supernet, routers included. After"
        " Table 14 of Mixture-of-Supernets, which reports BLEU of one large architecture and the memory of a GPU."
    )
    config = ExpertsConfig
    changed = (Measure("experts", "experts", "d"),)

    def wanted(self, own: MoSConfig, config: ExpertsConfig) -> dict[str, MoSConfig]:
        return {f"experts-{count}": replace(own, experts=count) for count in sorted({own.experts, *config.experts})}


class _Router(_Compared):
    name = "router"
    purpose = "Supernets with other routers (Mixture-of-Supernets, Table 13)."
    about = (
        "Supernets that differ from the given one in their routers are trained by the host's own trainer with the"
        " settings and seed of its training; the given one is not trained again. All are evaluated with the same"
        " architectures on the same examples. Layers are the linear layers of a router. After Table 13 of"
        " Mixture-of-Supernets, where two are best."
    )
    config = RouterConfig
    changed = (Measure("kind", "router"), Measure("router_layers", "layers", "d"))

    def wanted(self, own: MoSConfig, config: RouterConfig) -> dict[str, MoSConfig]:
        variants = {
            replace(own, kind=kind, router_layers=n) for kind in config.kind or [own.kind] for n in config.layers
        }
        ordered = sorted({own, *variants}, key=lambda experts: (experts.kind, experts.router_layers))
        return {f"{experts.kind}-{experts.router_layers}": experts for experts in ordered}


def _standalone(config: Any, subjects: Sequence[Subject], space: SearchSpace) -> list[StandaloneRun]:
    if config.standalone is None:
        return []
    runs = read_runs(config.standalone, space)
    check_examples(subjects, runs, config.standalone)
    for run in runs:
        metric_of(run.metrics, config.metric, str(config.standalone))
    return runs


def _files(subject: Subject, trained: Sequence[Any]) -> list[str]:
    files = sorted({other.path.name for other in trained if isinstance(getattr(other, "path", None), Path)})
    if not files or files == [subject.path.name]:
        return []
    return [f"{subject.path.name} is compared with {', '.join(files)}, which may be of another time of the training."]


def _quality(supernet: Supernet, architecture: Architecture, config: Any, subject: Subject) -> float:
    return metric_of(supernet.evaluate(architecture), config.metric, str(subject.path))


def _figures(supernet: Supernet, quality: Mapping[str, float]) -> dict[str, Any]:
    try:
        count = sum(weight.numel() for weight in learned_weights(supernet.network)) / 1e6
    except UnsupportedError:
        count = None
    random = [value for name, value in quality.items() if name.startswith("random")]
    ends = {name: quality[name] for name in ("smallest", "largest")}
    return {"parameters_m": count, **ends, "mean": float(np.mean(random)) if random else None}


def _gap(supernet: Supernet, runs: Sequence[StandaloneRun], config: Any, subject: Subject) -> dict[str, float]:
    if not runs:
        return {}
    inherited = [_quality(supernet, run.architecture, config, subject) for run in runs]
    figures = agreement(inherited, [run.metrics[config.metric] for run in runs])
    return {"error": figures.error, "tau": figures.tau}


EXPERTS = _Experts()
ROUTER = _Router()
