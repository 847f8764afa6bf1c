"""Samplers of Optuna, and this project's, on NAS-Bench-201 and -101, where all accuracies are published.

``python -m benchmarks optuna_samplers [--seeds 20]``; NAS_EXT_DATA names the folder of the tables. Samplers see genes
as categorical parameters. A query is one new cell. Trials that are not cells are pruned, and repeated cells are free.
This project's samplers know which are cells and propose each once. Queries and best cells are defined as in
``search_tables``. Results are the mean test accuracy of the best cell after each number of queries, and the queries
until one of the best 0.1 % is found.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from benchmarks.parts.cells import Table, nasbench101_table, nasbench201_table
from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import quartiles
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from optuna_ext import HATEvolutionSampler, RankNASSampler, suggest_architecture

RESULT = Path(__file__).parents[1] / "results" / "optuna_samplers.json"
SHARE, BUDGET, AFTER = 0.001, 100, (25, 50, 100)
TRIALS = 5
"""Largest number of trials per query of the budget."""
TABLES: Mapping[str, Callable[[], Table]] = {"nasbench201": nasbench201_table, "nasbench101": nasbench101_table}


def _evolution(table: Table, seed: int) -> optuna.samplers.BaseSampler:
    return HATEvolutionSampler(table.space, table.limits, seed=seed, iterations=400, population=20, parents=10)


SAMPLERS: Mapping[str, Callable[[Table, int], optuna.samplers.BaseSampler]] = {
    "random": lambda table, seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda table, seed: optuna.samplers.TPESampler(seed=seed),
    "gaussian process": lambda table, seed: optuna.samplers.GPSampler(seed=seed),
    "nsga-ii": lambda table, seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20),
    "hat evolution": _evolution,
    "ranknas": lambda table, seed: RankNASSampler(table.space, table.limits, seed=seed),
}


class Trajectory(NamedTuple):
    """Best accuracy by query, and cost of one study."""

    accuracy: list[float]
    """Test accuracy (at most 1) of the best cell after each query."""
    queries: int
    """Number of queries until one of the best cells; the budget if none is found."""
    trials: int
    seconds: float
    """Time of the sampler."""


def run(table: Table, sampler: optuna.samplers.BaseSampler, best: set[int], budget: int = BUDGET) -> Trajectory:
    study = optuna.create_study(sampler=sampler)
    evaluated: dict[int, None] = {}
    accuracy: list[float] = []
    best_found_after, leader = budget, -1
    start = time.perf_counter()

    def objective(trial: optuna.Trial) -> float:
        nonlocal best_found_after, leader
        cell = int(table.cells(table.space.rows([suggest_architecture(trial, table.space)]))[0])
        if cell < 0:
            raise optuna.TrialPruned("no cell")
        value = float(table.observed_accuracy[cell])
        if cell not in evaluated:
            evaluated[cell] = None
            leader = cell if leader < 0 or value > table.observed_accuracy[leader] else leader
            accuracy.append(float(table.test_accuracy[leader]))
            best_found_after = min(best_found_after, len(evaluated)) if cell in best else best_found_after
            if len(evaluated) == budget:
                study.stop()
        return -value

    study.optimize(objective, n_trials=TRIALS * budget)
    accuracy += accuracy[-1:] * (budget - len(accuracy))
    return Trajectory(accuracy, best_found_after, len(study.trials), time.perf_counter() - start)


def summary(trajectories: list[Trajectory]) -> dict[str, Any]:
    """Return medians and quartiles over seeds."""
    low, median, high = np.quantile([trajectory.queries for trajectory in trajectories], (0.25, 0.5, 0.75)).tolist()
    after, trials = {}, [trajectory.trials for trajectory in trajectories]
    for queries in AFTER:
        reached = [trajectory.accuracy[queries - 1] for trajectory in trajectories]
        after[str(queries)] = quartiles(np.array(reached), 4)
    return {
        "median": median, "q25": low, "q75": high, "accuracy_after": after,
        "trials": float(np.mean(trials)),
        "ms_per_trial": round(1000 * sum(trajectory.seconds for trajectory in trajectories) / sum(trials), 2),
        "seeds": len(trajectories),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument(
        "--out", type=Path, default=RESULT, help="file of the result; keeps rows of other tables and samplers"
    )
    options = parser.parse_args(argv)
    optuna.logging.set_verbosity(logging.ERROR)
    rows = read_json(options.out)["rows"] if options.out.exists() else []
    for name in options.tables:
        table = TABLES[name]()
        count = round(SHARE * len(table.test_accuracy))
        best = set(np.argsort(-table.test_accuracy)[:count].tolist())
        for sampler in options.samplers:
            trajectories = [run(table, SAMPLERS[sampler](table, seed), best) for seed in range(options.seeds)]
            rows = [row for row in rows if (row["table"], row["sampler"]) != (name, sampler)]
            rows.append(
                {
                    "table": name,
                    "answers": table.query_split,
                    "best": count,
                    "sampler": sampler,
                    **summary(trajectories),
                }
            )
            print(rows[-1], flush=True)
            top = {"budget": BUDGET, "optuna": optuna.__version__, "rows": rows}
            content = {**top, "machine": describe_machine("cpu", 1)}
            write_result(options.out, content, command(__file__, argv), adds=True)


if __name__ == "__main__":
    main()
