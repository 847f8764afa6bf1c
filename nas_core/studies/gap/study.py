"""The study ``gap``: inherited against standalone quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, DataError
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.architectures import ArchitecturesConfig, chosen, drawn, params_m
from nas_core.studies.base import Study, Subject, one_space, same_examples
from nas_core.studies.gap.agreement import FEWEST, agreement
from nas_core.studies.gap.comparison import ask_for, check_examples, doubts, metric_of, named_with_unit
from nas_core.studies.gap.runs import RESULTS, StandaloneRun, read_runs, train_standalone
from nas_core.studies.result import Measure, Pairs, StudyResult


@dataclass(frozen=True, kw_only=True)
class GapConfig:
    """Which architectures are compared, and where their standalone results come from.

    Raises:
        ConfigError: options that contradict each other, or a number out of range.
    """

    architectures: int = 15
    """Random architectures (paper: 15)"""
    arch: tuple[Path, ...] = ()
    """Architecture file, instead of random ones; repeatable"""
    seed: int = 0
    """Seed of the random architectures"""
    metric: str = "loss"
    """What is compared, by the name that the host gives it"""
    standalone: Path | None = None
    """Results of networks that were trained before (.jsonl), such as standalone.jsonl of another study: nothing is
    trained, and its architectures are compared"""
    train: dict[str, str] = field(default_factory=dict)
    """Setting of the standalone training that is another than the supernet's, by the trainer's name, such as
    max_update=2000 (fairseq) or epochs=20 (timm); repeatable"""
    jobs: int = 1
    """Networks that are trained at the same time"""

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.seed < 0:
            raise ConfigError(f"jobs {self.jobs}, seed {self.seed}; expected at least 1, and 0 or more")
        if self.standalone is not None and (self.train or self.arch):
            given = "train" if self.train else "arch"
            raise ConfigError(f"{given} with standalone, by which nothing is trained or chosen; leave one out")
        if self.standalone is None and not self.arch and self.architectures < FEWEST:
            raise ConfigError(
                f"architectures is {self.architectures}; expected at least {FEWEST} for a rank correlation"
            )


class _Gap(Study):
    name = "gap"
    purpose = "How far inherited is from standalone quality (Mixture-of-Supernets, Table 4, Figure 3)."
    about = (
        "Error is the mean absolute difference between the quality with inherited weights and that of the same network"
        " trained from scratch, on the same examples; tau is Kendall's tau-b between the two. Standalone networks are"
        " trained by the host's own trainer with the settings of the first supernet's training, from its seed, and"
        " evaluated after their last update. All supernets share them. After Table 4 and Figure 3 of"
        " Mixture-of-Supernets, where the quality is BLEU."
    )
    config = GapConfig

    def run(self, subjects: Sequence[Subject], config: GapConfig, folder: Path) -> StudyResult:
        """Train what is missing, and compare. An interrupted study goes on when it is started again."""
        space = one_space(subjects)
        same_examples(subjects)
        ask_for(config.metric, subjects, space.smallest())
        earlier = folder / RESULTS
        if config.standalone is None and earlier.exists():
            check_examples(subjects, read_runs(earlier, space), earlier)
        runs = _runs(subjects, space, config, folder)
        if len(runs) < FEWEST:
            raise DataError(f"{len(runs)} standalone networks; expected at least {FEWEST} for a rank correlation")
        check_examples(subjects, runs, config.standalone or earlier)
        named = {f"{index}": run for index, run in enumerate(runs, start=1)}
        sizes = params_m(space, {name: run.architecture for name, run in named.items()})
        alone = {name: metric_of(run.metrics, config.metric, "the standalone networks") for name, run in named.items()}
        rows: list[dict[str, Any]] = []
        series: dict[str, tuple[list[float], list[float]]] = {}
        summary: list[dict[str, Any]] = []
        for subject in subjects:
            inherited = {
                name: metric_of(subject.supernet.evaluate(run.architecture), config.metric, str(subject.path))
                for name, run in named.items()
            }
            found = agreement(list(inherited.values()), list(alone.values()))
            series[subject.name] = (list(alone.values()), list(inherited.values()))
            first = summary[0]["error"] if summary else found.error
            summary.append(
                {
                    "supernet": subject.name,
                    "architectures": len(named),
                    "error": found.error,
                    "better": 1 - found.error / first if summary and first else None,
                    "tau": found.tau,
                    "bias": found.bias,
                }
            )
            rows += [
                {
                    "supernet": subject.name,
                    "architecture": name,
                    "key": run.architecture.key,
                    "params_m": sizes.get(name),
                    "inherited": inherited[name],
                    "standalone": alone[name],
                    "difference": inherited[name] - alone[name],
                }
                for name, run in named.items()
            ]
        told = named_with_unit(subjects[0], config.metric)
        return StudyResult(
            (
                Measure("supernet", "supernet"),
                Measure("architecture", "no.", "s"),
                Measure("key", "architecture"),
                Measure("params_m", "M parameters", ".2f"),
                Measure("inherited", f"inherited {told}", ".4f"),
                Measure("standalone", "standalone", ".4f"),
                Measure("difference", "difference", "+.4f"),
            ),
            rows,
            (
                Measure("supernet", "supernet"),
                Measure("architectures", "networks", "d"),
                Measure("error", f"error of {told}", ".4f"),
                Measure("better", "less than the first", ".1%"),
                Measure("tau", "Kendall's tau", ".3f"),
                Measure("bias", "inherited - standalone", "+.4f"),
            ),
            summary,
            Pairs(series, f"standalone {told}", f"inherited {told}"),
            (self.about, *doubts(runs)),
            {
                "architectures": {name: run.architecture.to_dict() for name, run in named.items()},
                "training_seconds": {name: run.seconds for name, run in named.items()},
            },
        )


def _runs(subjects: Sequence[Subject], space: SearchSpace, config: GapConfig, folder: Path) -> Sequence[StandaloneRun]:
    if config.standalone is not None:
        return read_runs(config.standalone, space)
    architectures: list[Architecture]
    if config.arch:
        architectures = list(chosen(space, ArchitecturesConfig(arch=config.arch), at_least=FEWEST).values())
    else:
        architectures = drawn(space, config.architectures, config.seed)
    if len(architectures) < FEWEST:
        raise ConfigError(
            f"space {space.name!r} holds {len(architectures)} architectures; a rank correlation needs {FEWEST}"
        )
    first = subjects[0]
    return train_standalone(first.supernet, first.path, space, architectures, folder, config.train, config.jobs)


GAP = _Gap()
