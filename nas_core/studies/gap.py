"""Study ``gap``: compare subnets with equal networks trained from scratch (Mixture-of-Supernets, Table 4, Figure 3)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest, read_json, real_path
from nas_core.files.writing import make_folder, write_json
from nas_core.locks import file_lock
from nas_core.report.figures import pairs
from nas_core.report.tables import Column, Table
from nas_core.search.calibration.files import architecture_of
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.base import (
    ArchitecturesConfig,
    Study,
    StudyResult,
    Subject,
    check_same_examples,
    params_m,
    random_architectures,
    select_architectures,
    shared_space,
)
from nas_core.studies.trainings import LOG, train_all
from nas_core.supernet.host import Supernet

MIN_ARCHITECTURES = 3
RESULTS = "standalone.jsonl"
"""File in the study's folder with results of networks trained from scratch."""
SETTINGS = "standalone.json"


@dataclass(frozen=True)
class StandaloneRun:
    """Result of a network trained from scratch."""

    architecture: Architecture
    metrics: Mapping[str, float]
    examples: str = ""
    """Identifier of the evaluated examples, see :meth:`nas_core.supernet.Supernet.examples_key`; empty if unknown."""
    seconds: float | None = None


def read_runs(path: Path, space: SearchSpace) -> list[StandaloneRun]:
    """Read results of networks trained from scratch from a JSON Lines file.

    A line has ``architecture`` and ``metrics``.

    Raises:
        DataError: a line lacks an architecture of the search space or finite metrics, or repeats an architecture.
    """
    records: dict[Architecture, int] = {}
    runs = []
    for number, record in enumerate(read_jsonl(path), start=1):
        location = f"{path}, record {number}"
        architecture, metrics = architecture_of(record, space, location), record.get("metrics")
        if not isinstance(metrics, dict) or not metrics or any(value is None for value in metrics.values()):
            raise DataError(f"{location} has no metrics; finish its training, or remove the record")
        if bad := diverged(metrics):
            raise DataError(f"{location}: {bad}, the training has diverged; train it again, or remove the record")
        if architecture in records:
            raise DataError(
                f"{location} has the same architecture as record {records[architecture]}; remove one of them"
            )
        records[architecture] = number
        runs.append(
            StandaloneRun(architecture, dict(metrics), str(record.get("examples") or ""), record.get("seconds"))
        )
    if not runs:
        raise DataError(f"{path} is empty; expected one JSON object per line with 'architecture' and 'metrics'")
    return runs


def diverged(metrics: Mapping[str, float]) -> str:
    """Describe the first metric that is not finite; return an empty string if all are finite."""
    return next((f"{name} is {value}" for name, value in metrics.items() if not math.isfinite(value)), "")


def train_standalone(
    trainer: Supernet,
    checkpoint: Path,
    space: SearchSpace,
    architectures: Sequence[Architecture],
    folder: Path,
    changes: Mapping[str, str],
    jobs: int = 1,
) -> list[StandaloneRun]:
    """Train architectures from scratch unless the folder has their results; return all results in order.

    Each training has a folder in ``standalone/`` with its log; its result is appended to ``standalone.jsonl``. A second
    call resumes interrupted trainings.

    Args:
        trainer: supernet at ``checkpoint`` with the training settings.
        changes: training settings that differ from the supernet's.

    Raises:
        ConfigError: the folder is in use or contains results with other settings.
        DataError: a training failed.
    """
    results, folders = folder / RESULTS, {a: folder / "standalone" / a.key for a in architectures}
    with file_lock(folder / "standalone.lock", f"is training into {folder}", "give another --out"):
        runs = {run.architecture: run for run in read_runs(results, space)} if results.exists() else {}
        missing = {run_folder: architecture for architecture, run_folder in folders.items() if architecture not in runs}

        def finished(run_folder: Path, seconds: float) -> None:
            run = _evaluate_run(trainer, missing[run_folder], run_folder, seconds)
            append_jsonl(results, {**vars(run), "architecture": run.architecture.to_dict(), "metrics": run.metrics})
            runs[run.architecture] = run

        settings: dict[str, Any] = {"settings_of": file_digest(checkpoint), "changes": dict(changes)}
        if missing:  # otherwise the data may be gone
            settings["data"] = dict(trainer.training_data())
        _check_settings(folder, settings)
        if missing:
            for run_folder in missing:
                make_folder(run_folder)
            commands = {p: trainer.standalone_command(a, real_path(p), changes) for p, a in missing.items()}
            write_json(folder / SETTINGS, settings)
            train_all(commands, jobs, finished)
    return [runs[architecture] for architecture in folders]


def _check_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    file = folder / SETTINGS
    earlier = read_json(file) if file.exists() and any(folder.glob(f"**/{LOG}")) else {}
    for name, value in settings.items():
        if name in earlier and earlier[name] != value:
            detail = "" if name == "settings_of" else f" ({name}: {json.dumps(earlier[name])}, now {json.dumps(value)})"
            raise ConfigError(
                f"{folder} contains standalone runs with other settings{detail}; give the same first checkpoint and the"
                " same settings, or another folder"
            )


def _evaluate_run(trainer: Supernet, architecture: Architecture, folder: Path, seconds: float) -> StandaloneRun:
    try:
        metrics, examples = trainer.evaluate_standalone(folder)
    except NasExtError as error:
        raise DataError(
            f"the network trained in {folder} cannot be evaluated ({error}); delete the folder and run again"
        ) from None
    if bad := diverged(metrics):
        raise DataError(
            f"the training in {folder} has diverged: {bad}; give other settings with --set train.NAME=VALUE, and"
            " another --out"
        )
    return StandaloneRun(architecture, metrics, examples, round(seconds, 2))


# -- comparison ------------------------------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """Agreement of quality with supernet weights (inherited) and after training from scratch (standalone)."""

    error: float
    """Mean absolute difference, in the unit of the quality."""
    tau: float
    """Kendall's tau-b, from -1 to 1."""
    bias: float
    """Mean of inherited minus standalone."""


def agreement(inherited: Sequence[float], standalone: Sequence[float]) -> Agreement:
    """Compare inherited and standalone quality ``(n,)`` of the same networks.

    Raises:
        DataError: there are fewer than 3 values, or they are not finite or all equal.
    """
    first, second = np.asarray(inherited, dtype=float), np.asarray(standalone, dtype=float)
    if len(first) != len(second) or len(first) < MIN_ARCHITECTURES:
        raise DataError(
            f"got {len(first)} architectures; a rank correlation needs at least {MIN_ARCHITECTURES}; give more"
            " architectures"
        )
    for values, kind in ((first, "inherited"), (second, "standalone")):
        if not np.isfinite(values).all():
            raise DataError(
                f"the {kind} quality of a network is {values[~np.isfinite(values)][0]}, expected a finite number; leave"
                " the network out"
            )
        if len(set(values.tolist())) == 1:
            raise DataError(
                f"all {len(values)} {kind} qualities are {values[0]:g} and cannot be ranked; give networks that differ"
                " more, or train longer"
            )
    difference = first - second
    tau = float(kendalltau(first, second).statistic)
    return Agreement(float(np.abs(difference).mean()), tau, float(difference.mean()))


def check_examples(subjects: Sequence[Subject], runs: Sequence[StandaloneRun], path: Path) -> None:
    """Raise a DataError if results of networks trained from scratch have other examples than the supernets.

    Args:
        path: file of the results, for the message.
    """
    for subject in subjects:
        key = subject.supernet.examples_key()
        if key and (other := sum(run.examples not in ("", key) for run in runs)):
            raise DataError(
                f"{path}: {other} of {len(runs)} results were evaluated on other examples than {subject.path}; give"
                " the same data, split and number of examples"
            )


def metric_of(metrics: Mapping[str, float], name: str, source: str) -> float:
    if name not in metrics:
        raise DataError(f"{source}: no metric {name!r}; choose one of {', '.join(metrics)} with --set metric=NAME")
    return float(metrics[name])


def run_warnings(runs: Sequence[StandaloneRun]) -> list[str]:
    unknown = sum(not run.examples for run in runs)
    note = f"{unknown} of {len(runs)} standalone results do not name their examples; these were not compared."
    return [note] if unknown else []


@dataclass(frozen=True, kw_only=True)
class GapConfig:
    """Settings of the study ``gap``."""

    architectures: int = 15
    """Number of random architectures (paper: 15)"""
    arch: tuple[Path, ...] = ()
    """Architecture file; replaces the random architectures; repeatable"""
    seed: int = 0
    """Seed of the random architectures"""
    metric: str = "loss"
    """Metric to compare, such as loss or accuracy"""
    standalone: Path | None = None
    """Results of networks trained from scratch (.jsonl), such as standalone.jsonl of another study; nothing is trained
    then
    """
    train: dict[str, str] = field(default_factory=dict)
    """Setting of the training from scratch that differs from the supernet's, such as max_update=2000 (fairseq) or
    epochs=20 (timm); repeatable
    """
    jobs: int = 1
    """Number of simultaneous trainings"""

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.seed < 0:
            raise ConfigError(f"jobs is {self.jobs} and seed is {self.seed}; expected at least 1 and 0")
        if self.standalone is not None and (self.train or self.arch):
            option = "train" if self.train else "arch"
            raise ConfigError(f"{option} has no effect with standalone; leave out one of the two")
        if self.standalone is None and not self.arch and self.architectures < MIN_ARCHITECTURES:
            raise ConfigError(
                f"architectures is {self.architectures}; a rank correlation needs at least {MIN_ARCHITECTURES}"
            )


class _Gap(Study):
    name = "gap"
    purpose = "Difference of inherited and standalone quality (Mixture-of-Supernets, Table 4, Figure 3)."
    about = (
        "Error is the mean absolute difference between the quality with inherited weights and that of the same network"
        " trained from scratch, on the same examples; tau is Kendall's tau-b between the two. Standalone networks are"
        " trained by the host's own trainer with the settings of the first supernet's training, from its seed, and"
        " evaluated after their last update. All supernets share them. After Table 4 and Figure 3 of"
        " Mixture-of-Supernets, where the quality is BLEU."
    )
    config = GapConfig

    def run(self, subjects: Sequence[Subject], config: GapConfig, folder: Path) -> StudyResult:
        space = shared_space(subjects)
        check_same_examples(subjects)
        for subject in subjects:
            subject.supernet.add_metric(config.metric)
            metric_of(subject.supernet.evaluate(space.smallest()), config.metric, str(subject.path))
        results = config.standalone or folder / RESULTS
        if results.exists():  # before any training
            check_examples(subjects, read_runs(results, space), results)
        runs = read_runs(results, space) if config.standalone else _trained(subjects[0], space, config, folder)
        check_examples(subjects, runs, results)
        named = {f"{index}": run for index, run in enumerate(runs, start=1)}
        sizes = params_m(space, {name: run.architecture for name, run in named.items()})
        standalone = {
            name: metric_of(run.metrics, config.metric, "the standalone networks") for name, run in named.items()
        }
        rows: list[dict[str, Any]] = []
        series: dict[str, tuple[list[float], list[float]]] = {}
        summary: list[dict[str, Any]] = []
        for subject in subjects:
            inherited = {
                name: metric_of(subject.supernet.evaluate(run.architecture), config.metric, str(subject.path))
                for name, run in named.items()
            }
            figures = agreement(list(inherited.values()), list(standalone.values()))
            series[subject.name] = (list(standalone.values()), list(inherited.values()))
            first = summary[0]["error"] if summary else figures.error
            summary.append(
                {
                    "supernet": subject.name,
                    "architectures": len(named),
                    "error": figures.error,
                    "better": 1 - figures.error / first if summary and first else None,
                    "tau": figures.tau,
                    "bias": figures.bias,
                }
            )
            rows += [
                {
                    "supernet": subject.name,
                    "architecture": name,
                    "key": run.architecture.key,
                    "params_m": sizes.get(name),
                    "inherited": inherited[name],
                    "standalone": standalone[name],
                    "difference": inherited[name] - standalone[name],
                }
                for name, run in named.items()
            ]
        unit = subjects[0].supernet.units.get(config.metric, "")
        label = f"{config.metric} ({unit})" if unit else config.metric
        columns = [
            Column("supernet", "supernet"),
            Column("architecture", "no.", "s"),
            Column("key", "architecture"),
            Column("params_m", "M parameters", ".2f"),
            Column("inherited", f"inherited {label}", ".4f"),
            Column("standalone", "standalone", ".4f"),
            Column("difference", "difference", "+.4f"),
        ]
        summary_columns = [
            Column("supernet", "supernet"),
            Column("architectures", "networks", "d"),
            Column("error", f"error of {label}", ".4f"),
            Column("better", "less than the first", ".1%"),
            Column("tau", "Kendall's tau", ".3f"),
            Column("bias", "inherited - standalone", "+.4f"),
        ]
        return StudyResult(
            Table(columns, rows),
            Table(summary_columns, summary),
            {"": pairs(series, f"standalone {label}", f"inherited {label}")},
            (self.about, *run_warnings(runs)),
            {
                "architectures": {name: run.architecture.to_dict() for name, run in named.items()},
                "training_seconds": {name: run.seconds for name, run in named.items()},
            },
        )


def _trained(subject: Subject, space: SearchSpace, config: GapConfig, folder: Path) -> list[StandaloneRun]:
    if config.arch:
        architectures = list(
            select_architectures(space, ArchitecturesConfig(arch=config.arch), at_least=MIN_ARCHITECTURES).values()
        )
    else:
        architectures = random_architectures(space, config.architectures, config.seed)
    return train_standalone(subject.supernet, subject.path, space, architectures, folder, config.train, config.jobs)


GAP = _Gap()
