"""Queries until a search finds one of the best 0.1 % of NAS-Bench-201, where all answers are known.

A query is the validation accuracy of one cell (one training); what counts as best is the mean test accuracy. Each
strategy asks for one architecture after another until it has asked for one of the 15 best, or its budget is spent.

Run: ``python -m benchmarks.search_tables [--seeds 20]``. The table is not part of this repository: NAS_EXT_DATA names
the folder that holds it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._published import nasbench201, nasbench201_ops
from nas_core.files import write_json
from nas_core.graph.nasbench201 import CHOICES
from nas_core.latency.machine import describe_machine
from nas_core.search import (
    EvolutionConfig,
    HATEvolution,
    RandomConfig,
    RandomSearch,
    RankerConfig,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.space import Choice, SearchSpace

RESULT = Path(__file__).parent / "results" / "search_tables.json"
SHARE, BUDGET = 0.001, 1500
SPACE = SearchSpace("nasbench201", [Choice.make(f"edge{edge}", CHOICES) for edge in range(6)])
EVOLUTION = EvolutionConfig(iterations=200, population=20, parents=10, mutations=5, crossovers=5, mutation_prob=0.3)


def ranknas(encoding: str, objective: str) -> Callable[[int], Strategy]:
    config = RankNASConfig(
        samples=20, rounds=300, finalists=5, keep=0, candidates=1000, iterations=3, parents=50, children=100,
        ranker=RankerConfig(encoding=encoding, objective=objective),
    )  # fmt: skip
    return lambda seed: RankNAS(SPACE, (), config, seed=seed)


STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "random": lambda seed: RandomSearch(SPACE, (), RandomConfig(evaluations=BUDGET), seed=seed),
    "hat evolution": lambda seed: HATEvolution(SPACE, (), EVOLUTION, seed=seed),
    "ranknas": ranknas("onehot", "pairwise"),
    "ranknas, regression": ranknas("onehot", "regression"),
}


def queries(strategy: Strategy, accuracies: dict[bytes, float], best: set[bytes]) -> int:
    """How many were asked for until one of the best was among them; the budget if none was."""
    for count in range(1, BUDGET + 1):
        asked = strategy.ask(1)
        if not asked:
            return BUDGET
        key = SPACE.row(asked[0]).tobytes()
        if key in best:
            return count
        strategy.tell(asked[0], {"loss": -accuracies[key]})
    return BUDGET


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    _, valid, test = nasbench201()
    keys = [row.tobytes() for row in nasbench201_ops().astype(np.int16)]
    accuracies = dict(zip(keys, valid.tolist(), strict=True))
    best = {keys[index] for index in np.argsort(-test)[: round(SHARE * len(test))]}
    rows: list[dict[str, Any]] = []
    for name in options.strategies:
        found = [queries(STRATEGIES[name](seed), accuracies, best) for seed in range(options.seeds)]
        low, median, high = np.quantile(found, (0.25, 0.5, 0.75))
        rows.append(
            {
                "strategy": name,
                "median": median,
                "q25": low,
                "q75": high,
                "mean": float(np.mean(found)),
                "seeds": options.seeds,
            }
        )
        print(rows[-1], flush=True)
    write_json(options.out, {"best": len(best), "budget": BUDGET, "rows": rows, "machine": describe_machine("cpu", 1)})


if __name__ == "__main__":
    main()
