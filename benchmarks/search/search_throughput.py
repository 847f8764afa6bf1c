"""Speed of drawing and filtering architectures: mutation, crossover, removal of duplicates and a latency limit.

``python -m benchmarks search_throughput``. ``vectorised`` is :class:`~nas_core.search.strategies.proposals.Proposals`
on many integer rows at a time. ``one_by_one`` encodes and predicts one architecture at a time, as the authors' code of
HAT. Both use a linear latency model on HAT's features in the space of WMT'14 En-De and alternate. Figures count drawn
architectures, accepted or not. The Pareto archive is measured with entries that are all on the front.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.record import command, write_result
from nas_core.latency.machine import describe_machine
from nas_core.search import Constraint, HATEvolution, ParetoArchive
from nas_core.search.strategies.proposals import Proposals, row_keys
from nas_core.space import Architecture, get_space
from nas_core.space.slots import Rows

SPACE = get_space("hat_wmt14_en_de")
WEIGHTS = np.array([30.0, 10.0, 12.0, 1.0, 25.0, 60.0, 9.0, 2.0, 2.0, 4.0])
"""Milliseconds per unit of each feature, in proportion to HAT's tables."""
AIM = 20_000
ENTRIES = 50_000
"""Size of the archive."""
RESULT = Path(__file__).parents[1] / "results" / "search_throughput.json"


def latency_ms(rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
    return SPACE.encode_rows(rows) @ WEIGHTS


def vectorised(parents: Rows, limit_ms: float, candidates: int) -> tuple[int, int]:
    """Draw mutants and crossovers in batches; return the numbers of drawn and accepted architectures."""
    rng = np.random.default_rng(1)
    proposals = Proposals(SPACE, [Constraint("latency_ms", limit_ms, latency_ms)], candidates // 2)
    drawn = 0

    def mutated(k: int) -> Rows:
        nonlocal drawn
        drawn += k
        return SPACE.mutate_rows(parents[rng.integers(len(parents), size=k)], 0.3, rng)

    def crossed(k: int) -> Rows:
        nonlocal drawn
        drawn += k
        first, second = (parents[rng.integers(len(parents), size=k)] for _ in range(2))
        return SPACE.crossover_rows(first, second, rng)

    excluded = set(row_keys(parents))
    accepted = sum(len(proposals.take(draw, candidates, excluded)) for draw in (mutated, crossed))
    return drawn, accepted


def one_by_one(parents: Rows, limit_ms: float, candidates: int) -> tuple[int, int]:
    """Draw mutants and crossovers singly; return the numbers of drawn and accepted architectures."""
    rng = np.random.default_rng(1)
    values = SPACE.architectures(parents)
    accepted: set[Architecture] = set(values)
    before = len(accepted)
    for index in range(candidates):
        first, second = (values[int(place)] for place in rng.integers(len(values), size=2))
        child = SPACE.crossover(first, second, rng) if index % 2 else SPACE.mutate(first, 0.3, rng)
        if child not in accepted and float(SPACE.encode(child)[0] @ WEIGHTS) <= limit_ms:
            accepted.add(child)
    return candidates, len(accepted) - before


def whole_search(limit_ms: float) -> float:
    """Return different architectures per second of a HAT evolution with free evaluations."""
    strategy = HATEvolution(SPACE, [Constraint("latency_ms", limit_ms, latency_ms)])
    start = time.perf_counter()
    while batch := strategy.ask(125):
        for architecture in batch:
            strategy.tell(architecture, {"loss": int(architecture.key, 16) % 1000})
    return strategy.proposals.tried / (time.perf_counter() - start)


def archive_ms(entries: int, objectives: int) -> float:
    """Return the mean milliseconds to add an entry."""
    names = [f"objective {index}" for index in range(objectives)]
    order = np.random.default_rng(0).permutation(entries).tolist()
    vectors = [(place, entries - place, place % 7)[:objectives] for place in order]
    points = [(Architecture({"n": place}), dict(zip(names, vector, strict=True)))
              for place, vector in zip(order, vectors, strict=True)]  # fmt: skip
    archive = ParetoArchive(names)
    start = time.perf_counter()
    for architecture, metrics in points:
        archive.add(architecture, metrics)
    assert len(archive) == entries
    return (time.perf_counter() - start) / entries * 1000


def measure(rounds: int = 5) -> dict[str, Any]:
    parents = SPACE.sample_rows(np.random.default_rng(0), 25)
    limit_ms = float(np.median(latency_ms(SPACE.sample_rows(np.random.default_rng(2), 10_000))))
    rates: dict[str, list[float]] = {"vectorised": [], "one_by_one": []}
    acceptance = {}
    for _ in range(rounds):
        for name, run, candidates in (("vectorised", vectorised, 40_000), ("one_by_one", one_by_one, 1000)):
            start = time.perf_counter()
            drawn, accepted = run(parents, limit_ms, candidates)
            rates[name].append(drawn / (time.perf_counter() - start))
            acceptance[name] = accepted / drawn
    ratios = [fast / slow for fast, slow in zip(rates["vectorised"], rates["one_by_one"], strict=True)]
    fast = float(np.median(rates["vectorised"]))
    return {
        "space": SPACE.name,
        "limit_ms": limit_ms,
        "candidates_per_s": {name: round(float(np.median(rate))) for name, rate in rates.items()},
        "kept_of_drawn": {name: round(share, 3) for name, share in acceptance.items()},
        "ratio": round(float(np.median(ratios)), 1),
        "ratio_range": [round(min(ratios), 1), round(max(ratios), 1)],
        "whole_search_candidates_per_s": round(whole_search(limit_ms)),
        "archive_all_on_the_front": [
            {"entries": ENTRIES, "objectives": objectives, "entry_ms": round(archive_ms(ENTRIES, objectives), 4)}
            for objectives in (2, 3)
        ],
        "aim_candidates_per_s": AIM,
        "reached": fast >= AIM,
        "rounds": rounds,
        "machine": {**describe_machine("cpu", 1), "python": platform.python_version(), "numpy": np.__version__},
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT, help="where the JSON goes")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions; medians are reported")
    arguments = parser.parse_args(argv)
    result = measure(arguments.rounds)
    write_result(arguments.out, result, command(__file__, argv))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
