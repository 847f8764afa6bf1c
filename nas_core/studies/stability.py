"""Study ``stability``: repeat a search with several seeds (Mixture-of-Supernets, Table 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.files.reading import file_digest
from nas_core.latency import load_latency_model
from nas_core.search import STRATEGIES, Strategy, search
from nas_core.search.constraints import Constraint
from nas_core.search.limits import cost_limits, costs_on_paper, latency_limit
from nas_core.search.registry import config_of
from nas_core.space import Architecture, SearchSpace
from nas_core.studies.base import (
    Measure,
    Pairs,
    Study,
    StudyResult,
    Subject,
    one_space,
    same_examples,
)

_COSTS = {"latency_ms": "predicted latency (ms)", "params_m": "parameters (M)"}
"""Costs for the horizontal axis; the first that can be computed is used."""


@dataclass(frozen=True, kw_only=True)
class StabilityStudyConfig:
    """Settings of the study ``stability``."""

    seeds: int = 3
    """Number of searches, with seeds 1, 2, .. (paper: 3)"""
    strategy: str = "evolution"
    """Search strategy, see 'nas-ext search --help'"""
    set: dict[str, str] = field(default_factory=dict)
    """Option of the strategy, such as iterations=10; repeatable"""
    max_params_m: float | None = None
    """Largest number of parameters in millions"""
    max_flops_g: float | None = None
    """Largest number of FLOPs in billions"""
    latency_model: Path | None = None
    """File written by 'nas-ext latency fit', for limit_ms"""
    limit_ms: float | None = None
    """Largest latency in milliseconds"""

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise ConfigError(f"seeds is {self.seeds}; expected at least 2")
        if (self.limit_ms is None) != (self.latency_model is None):
            raise ConfigError("limit_ms and latency_model need each other; give both or none")


class _Stability(Study):
    name = "stability"
    purpose = "Dependence of a search's result on its seed (Mixture-of-Supernets, Table 12)."
    about = (
        "The same search on the same supernet with several seeds: loss (with inherited weights) and cost of the best"
        " network within the limits per seed. The standard deviation is over the seeds (with n - 1). The seeds share"
        " evaluations, which changes only their time. After Table 12 of Mixture-of-Supernets."
    )
    config = StabilityStudyConfig

    def run(self, subjects: Sequence[Subject], config: StabilityStudyConfig, folder: Path) -> StudyResult:
        space = one_space(subjects)
        same_examples(subjects)
        model = None if config.latency_model is None else load_latency_model(config.latency_model, "genes", space)
        limits = cost_limits(space, {"params_m": config.max_params_m, "flops_g": config.max_flops_g})
        if model is not None and config.limit_ms is not None:
            limits = [latency_limit(model, config.limit_ms), *limits]
        costs: dict[str, Any] = dict(costs_on_paper(space))
        if model is not None:
            costs["latency_ms"] = lambda architecture: float(model.predict(architecture)[0])
        axis = next((name for name in _COSTS if name in costs), "seed")
        rows: list[dict[str, Any]] = []
        summary, series = [], {}
        for number, subject in enumerate(subjects, start=1):
            best = _searched(subject, space, config, limits, folder / f"search-{number}")
            losses = list(best.values())
            figures_by_seed = {
                seed: {"loss": loss, **{name: cost(architecture) for name, cost in costs.items()}}
                for seed, (architecture, loss) in best.items()
            }
            rows += [
                {"supernet": subject.name, "seed": seed, "key": best[seed][0].key, **figures}
                for seed, figures in figures_by_seed.items()
            ]
            values = np.array([loss for _, loss in losses])
            x = [figures.get(axis, float(seed)) for seed, figures in figures_by_seed.items()]
            series[subject.name] = (x, [figures["loss"] for figures in figures_by_seed.values()])
            summary.append(
                {
                    "supernet": subject.name,
                    "mean": float(values.mean()),
                    "deviation": float(values.std(ddof=1)),
                    "range": float(values.max() - values.min()),
                    "networks": len({architecture for architecture, _ in losses}),
                    "seeds": len(losses),
                }
            )
        return StudyResult(
            (
                Measure("supernet", "supernet"),
                Measure("seed", "seed", "d"),
                Measure("key", "best network"),
                Measure("loss", "loss", ".4f"),
                Measure("latency_ms", "latency (ms)", ".3f"),
                Measure("params_m", "M parameters", ".3f"),
                Measure("flops_g", "GFLOPs", ".4f"),
            ),
            rows,
            (
                Measure("supernet", "supernet"),
                Measure("seeds", "seeds", "d"),
                Measure("mean", "loss, mean", ".4f"),
                Measure("deviation", "deviation", ".4f"),
                Measure("range", "range", ".4f"),
                Measure("networks", "different networks", "d"),
            ),
            summary,
            Pairs(series, _COSTS.get(axis, axis), "loss of the best network", equal=False),
            (self.about,),
        )


def _searched(
    subject: Subject,
    space: SearchSpace,
    config: StabilityStudyConfig,
    limits: Sequence[Constraint],
    folder: Path,
) -> dict[int, tuple[Architecture, float]]:
    kind = STRATEGIES.get(config.strategy)
    if kind.multi_objective:
        raise ConfigError(
            f"strategy {config.strategy} returns a Pareto front; expected a strategy for one objective, such as"
            " evolution"
        )
    settings = config_of(config.strategy, config.set)
    strategies: dict[str, Strategy] = {
        f"seed {seed}": kind.create(space, list(limits), settings, objectives=["loss"], seed=seed)
        for seed in range(1, config.seeds + 1)
    }
    search(
        strategies,
        subject.supernet.evaluate,
        folder,
        objectives=["loss"],
        settings={"checkpoint_sha256": file_digest(subject.path), "evaluated_on": subject.supernet.examples_key()},
        progress=False,
    )
    best_by_seed = {}
    for seed, strategy in enumerate(strategies.values(), start=1):
        best = strategy.best()
        if best is None:
            raise NasExtError(f"{subject.path}: all evaluations of the search with seed {seed} failed; see {folder}")
        best_by_seed[seed] = best
    return best_by_seed


STABILITY = _Stability()
