"""Loss against number of evaluations in searches of a supernet under a latency limit.

``python -m benchmarks search_quality CHECKPOINT --data BIN --latency-model MODEL --limit-ms MS --work DIR``: the
supernet is one of ``translation_quality``. Strategies are random search, HAT's evolution (3,750 proposals), and
RankNAS: with boosted trees (on the five genes most important for the loss and the five most important for the latency,
and on all genes) and with its default, a Gaussian process. All share one cache of evaluations below DIR, from which the
same command resumes; each is charged for the evaluations that it needs alone. The result also has the number of
evaluations to reach the final loss of evolution.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.record import command, write_result
from fairseq_ext.checkpoint import read_checkpoint
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.latency import load_latency_model
from nas_core.latency.machine import describe_machine
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.search.limits import latency_limit
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import open_supernet

RESULT = Path(__file__).parents[1] / "results" / "search_quality.json"
COUNTS = (25, 50, 100, 200, 300, 500, 1000, 2000)
StrategyFactory = Callable[[SearchSpace, Sequence[Constraint], int], Strategy]
RANKNAS = RankNASConfig(ranker="boosted", samples=60, rounds=12, per_round=20, keep_genes=5)
"""Settings of the published rows."""

EVOLUTION = "hat evolution"
STRATEGIES: Mapping[str, StrategyFactory] = {
    "random": lambda space, limits, seed: RandomSearch(space, limits, RandomConfig(evaluations=1000), seed=seed),
    EVOLUTION: lambda space, limits, seed: HATEvolution(space, limits, EvolutionConfig(), seed=seed),
    "ranknas, five genes by loss and five by latency": lambda space, limits, seed: RankNAS(
        space, limits, RANKNAS, seed=seed
    ),
    "ranknas, all genes": lambda space, limits, seed: RankNAS(space, limits, replace(RANKNAS, keep_genes=0), seed=seed),
    "ranknas, gaussian process": lambda space, limits, seed: RankNAS(space, limits, seed=seed),
}


class Cache:
    """Losses by architecture, stored in a file."""

    def __init__(self, path: Path, evaluate: Callable[[Architecture], Mapping[str, float]]) -> None:
        self._path, self._evaluate = path, evaluate
        entries = read_jsonl(path) if path.exists() else []
        self._losses = {Architecture(entry["genes"]): float(entry["loss"]) for entry in entries}

    def __call__(self, architecture: Architecture) -> float:
        if architecture not in self._losses:
            loss = float(self._evaluate(architecture)["loss"])
            append_jsonl(self._path, {"genes": architecture.to_dict(), "loss": loss})
            self._losses[architecture] = loss
        return self._losses[architecture]

    def __len__(self) -> int:
        return len(self._losses)


def run_search(strategy: Strategy, loss: Callable[[Architecture], float], label: str) -> list[float]:
    """Return the best loss after each evaluation."""
    best: list[float] = []
    while batch := strategy.ask(1):
        value = loss(batch[0])
        strategy.tell(batch[0], {"loss": value})
        best.append(min(value, best[-1]) if best else value)
        if len(best) % 100 == 0:
            print(f"{label}: {len(best)} evaluations, {best[-1]:.4f}", flush=True)
    return best


def evaluations_to(best: Sequence[float], goal: float) -> int | None:
    """Return the number of evaluations until the loss is at most the goal."""
    return next((count for count, loss in enumerate(best, start=1) if loss <= goal), None)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of fairseq-preprocess")
    parser.add_argument("--latency-model", type=Path, required=True)
    parser.add_argument("--limit-ms", type=float, required=True)
    parser.add_argument("--valid-samples", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", type=Path, default=Path("runs/search_quality"))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    supernet = open_supernet(
        options.checkpoint, data=str(options.data), valid_samples=options.valid_samples, device=options.device
    )
    limits = [latency_limit(load_latency_model(options.latency_model, "genes", supernet.space), options.limit_ms)]
    options.work.mkdir(parents=True, exist_ok=True)
    evaluate = Cache(options.work / "losses.jsonl", supernet.evaluate)
    trajectories: dict[str, list[list[float]]] = {name: [] for name in STRATEGIES}
    free_genes: dict[str, list[list[str]]] = {}
    cache_shares: list[float] = []
    for seed in range(options.seeds):
        for name, make in STRATEGIES.items():
            strategy = make(supernet.space, limits, seed)
            trajectories[name].append(run_search(strategy, evaluate, f"{name}, seed {seed}"))
            if isinstance(strategy, RankNAS):
                free_genes.setdefault(name, []).append(strategy.free_genes)
            if name == EVOLUTION:
                cache_shares.append(round(strategy.cache_hits / strategy.proposed, 3))
        settings = {"space": supernet.space.name, "limit_ms": options.limit_ms, "sentences": options.valid_samples}
        settings["supernet_updates"] = read_checkpoint(options.checkpoint)["optimizer_history"][-1]["num_updates"]
        counts = {"saved_by_evolutions_cache": cache_shares, "distinct_evaluations": len(evaluate)}
        machine = describe_machine(options.device, 1)
        content = {**settings, **counts, "rows": summary(trajectories, free_genes), "machine": machine}
        write_result(options.out, content, command(__file__, argv))


def summary(
    trajectories: Mapping[str, Sequence[Sequence[float]]], free_genes: Mapping[str, Sequence[Sequence[str]]]
) -> list[dict[str, Any]]:
    """Return a row per strategy; lists have one entry per seed."""
    goals = [best[-1] for best in trajectories[EVOLUTION]]
    rows = []
    for name, seeds in trajectories.items():
        counts = [n for n in COUNTS if all(len(best) >= n for best in seeds)]
        row = {
            "strategy": name,
            "evaluations": [len(best) for best in seeds],
            "final_loss": [round(best[-1], 4) for best in seeds],
            "mean_loss_after": {str(n): round(float(np.mean([best[n - 1] for best in seeds])), 4) for n in counts},
            "evaluations_to_evolutions_final_loss": [evaluations_to(b, g) for b, g in zip(seeds, goals, strict=True)],
            "evaluations_to_within_0.1_percent": [
                evaluations_to(b, 1.001 * g) for b, g in zip(seeds, goals, strict=True)
            ],
        }
        if name in free_genes:
            row["free_genes_of_the_last_ranking"] = [list(genes) for genes in free_genes[name]]
        print(row, flush=True)
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
