"""Small searches of every strategy over evaluations that fail, alone or in jobs, and their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nas_core.jobs import JobsConfig
from nas_core.search import (
    EvolutionConfig,
    HATEvolution,
    HypervolumeConfig,
    HypervolumeSearch,
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
    search,
)
from nas_core.search.executor import DeviceExecutor, SubmititExecutor
from tests.contracts.strategy import SPACE, limit
from tests.search.toy_host import troubled

FILES = ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json")
SMALL = EvolutionConfig(iterations=3, population=12, parents=4)
STRATEGIES: dict[str, Callable[[float], Strategy]] = {
    "evolution": lambda value: HATEvolution(SPACE, [limit(value)], SMALL, seed=1),
    "random": lambda value: RandomSearch(SPACE, [limit(value)], RandomConfig(evaluations=40, batch=15), seed=1),
    "ranknas": lambda value: RankNAS(
        SPACE,
        [limit(value)],
        RankNASConfig(samples=20, rounds=2, per_round=6, candidates=50, generations=2),
        seed=1,
    ),
    "hypervolume": lambda value: HypervolumeSearch(
        SPACE, [limit(value)], HypervolumeConfig(evaluations=36, samples=12, per_round=4, candidates=50), seed=1
    ),
    "multi-objective": lambda value: MultiObjectiveEvolution(
        SPACE, [limit(value)], MultiObjectiveConfig(iterations=3, population=8), seed=1
    ),
}


def one_limit(iterations: int) -> dict[str, Strategy]:
    config = replace(SMALL, iterations=iterations)
    return {"latency_ms<=3000": HATEvolution(SPACE, [limit(3000.0)], config, seed=1)}


evaluate = troubled({"fail": True})


def same_files(first: Path, other: Path) -> None:
    for name in FILES:
        assert (first / name).read_bytes() == (other / name).read_bytes(), name


def in_jobs(path: Path, folder: Path, iterations: int = 1, **jobs: Any) -> None:
    config = JobsConfig(**{"jobs": 2, "per_job": 20, **jobs})
    evaluations = SubmititExecutor(path, {"device": "cpu"}, config, folder / "jobs")
    options: dict[str, Any] = {"evaluate_many": evaluations, "batch_size": evaluations.batch_size, "progress": False}
    search(one_limit(iterations), None, folder, **options)


def on_devices(path: Path, folder: Path, iterations: int = 1, devices: str = "cpu,cpu") -> None:
    with DeviceExecutor(path, devices) as evaluations:
        settings: dict[str, Any] = {
            "evaluate_many": evaluations,
            "batch_size": evaluations.batch_size,
            "progress": False,
        }
        search(one_limit(iterations), None, folder, **settings)
