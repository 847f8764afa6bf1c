"""Estimates of the BLEU of translation networks trained from scratch: by supernets, sizes, predictors and calibration.

``python -m benchmarks real_bleu``; results are stored in ``--work``. The table has 30 networks of HAT's space per task.
The target is test BLEU from scratch. Inputs are validation BLEU with supernet weights, sizes, graphs, and the targets
of 0, 5, 10 or 15 trained networks. Without trained networks, supernets are evaluated by test BLEU, as published.

``published`` are the three published training sets of ten networks, with the other twenty held out; five are drawn from
these ten. ``drawn`` are random draws of five, ten and fifteen. Figures are means over splits: Kendall's tau, mean
absolute error in BLEU, and interval coverage. NN-Former is one network of the recipe ``ensemble`` with half its
epochs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.parts import published
from benchmarks.parts.accuracy.metrics import interval_coverage
from benchmarks.parts.bleu.methods import METHODS, SLOW, UNTRAINED_METHODS
from benchmarks.parts.bleu.networks import TABLE, Indices, TranslationTask, tasks, translation_task
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merge_rows, results
from nas_core.latency.machine import describe_machine
from nas_core.predictor import kendall_tau

RESULT = Path(__file__).parents[1] / "results" / "real_bleu.json"
PUBLISHED, DRAWN = "published", "drawn"
AIMS = {"tau": 0.85, "error": 0.18}
"""Aims of the calibration with ten trained networks, as means over tasks"""
DRAWS = 100
SLOW_DRAWS = 2


@dataclass(frozen=True)
class Task:
    task: str
    method: str
    trained: int
    protocol: str
    draw: int

    @property
    def key(self) -> dict[str, Any]:
        return dict(vars(self))


def split(networks: TranslationTask, task: Task) -> tuple[Indices, Indices]:
    """Return indices of trained and held-out networks."""
    indices = np.arange(len(networks.bleu))
    if task.protocol == DRAWN:
        order = np.random.default_rng([task.trained, task.draw]).permutation(indices)
        return np.sort(order[: task.trained]), np.sort(order[task.trained :])
    seeds = sorted(networks.splits)
    seed, repetition = seeds[task.draw % len(seeds)], task.draw // len(seeds)
    published_training_set = networks.splits[seed]
    training = np.random.default_rng([repetition, 7]).permutation(published_training_set)[: task.trained]
    return np.sort(training), np.setdiff1d(indices, published_training_set)


def run(task: Task) -> dict[str, Any]:
    """Evaluate one estimate on one thread."""
    torch.set_num_threads(1)
    networks = translation_task(task.task)
    trained, held_out = split(networks, task)
    estimates, std = METHODS[task.method](networks, trained)
    estimated, bleu = estimates[held_out], networks.bleu[held_out]
    metrics = {"judged": len(held_out)}
    if task.trained or task.method != "parameters":  # numbers of parameters are not BLEU
        metrics["error"] = float(np.abs(estimated - bleu).mean())
    if std is not None:
        metrics |= interval_coverage(estimated, std[held_out], bleu)
    return {**task.key, "tau": _tau(estimated, bleu), **metrics}


def _tau(estimates: Any, bleu: Any) -> float:
    return float(kendall_tau(estimates, bleu)) if np.ptp(estimates) > 0 else 0.0


def plan_tasks(names: list[str], draws: int, methods: Iterable[str] = tuple(METHODS)) -> list[Task]:
    tasks = []
    for name in names:
        seeds = len(translation_task(name).splits)
        for method in methods:
            if method in UNTRAINED_METHODS:
                tasks += [Task(name, method, 0, PUBLISHED, draw) for draw in range(seeds)]
            subsets = 1 if method in SLOW else max(draws // 4, 1)
            tasks += [Task(name, method, 5, PUBLISHED, draw) for draw in range(seeds * subsets)]
            tasks += [Task(name, method, 10, PUBLISHED, draw) for draw in range(seeds)]
            for count in (15,) if method in SLOW else (5, 10, 15):
                tasks += [
                    Task(name, method, count, DRAWN, draw)
                    for draw in range(min(SLOW_DRAWS, draws) if method in SLOW else draws)
                ]
    return tasks


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per task, method, number of trained networks and protocol, and means over tasks."""
    groups: dict[tuple[str, str, int, str], list[dict[str, Any]]] = {}
    for record in records:
        key = (record["method"], record["trained"], record["protocol"])
        groups.setdefault((record["task"], *key), []).append(record)
    rows = {}
    for (task, method, trained, protocol), draws in sorted(groups.items()):
        numbers = [name for name in _MEANS if name in draws[0]]
        rows[task, method, trained, protocol] = {
            "task": task, "method": method, "trained": trained, "protocol": protocol, "draws": len(draws),
            **{name: float(np.mean([record[name] for record in draws])) for name in numbers},
        }  # fmt: skip
    means = {}
    for _, *key in rows:
        of_tasks = [row for (_, *rest), row in rows.items() if rest == key]
        numbers = {name: float(np.mean([row[name] for row in of_tasks])) for name in of_tasks[0] if name in _MEANS}
        means[tuple(key)] = {**of_tasks[0], "task": "mean", **numbers}
    return [
        {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        for row in [*means.values(), *rows.values()]
    ]


_MEANS = ("tau", "error", "within_1", "within_2")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS, help="random draws per number of networks")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--work", type=Path, default=Path("runs") / "real_bleu.jsonl", help="file of single results")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    if reason := published.absent(TABLE):
        raise SystemExit(f"real_bleu: error: {reason}")
    names = tasks()
    planned_tasks = plan_tasks(names, options.draws, options.methods)
    keys = [task.key for task in planned_tasks]
    records = [
        record
        for record in results(planned_tasks, run, options.work, options.jobs)
        if {name: record[name] for name in planned_tasks[0].key} in keys
    ]
    noise = {name: round(_tau(translation_task(name).valid_bleu, translation_task(name).bleu), 4) for name in names}
    content = {
        "tasks": names,
        "aims": AIMS,
        "noise": noise,
        "rows": merge_rows(options.out, summary(records), ("task", "method", "trained", "protocol")),
        "machine": describe_machine("cpu", 1),
    }
    write_result(options.out, content, command(__file__, argv), adds=True)


if __name__ == "__main__":
    main()
