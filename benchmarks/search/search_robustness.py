"""Searches killed with SIGKILL at random moments and resumed, compared with undisturbed ones.

``python -m benchmarks search_robustness``. Each strategy searches ``hat_small`` under a limit, once undisturbed and
once killed at 20 random moments, each in its own process: when the journal has a random length, and up to 30 ms later.
All files of both runs are compared byte by byte. The evaluation is a formula that takes 3 ms.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.record import command, write_result
from nas_core.latency.machine import describe_machine
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
    search,
)
from nas_core.space import Architecture, get_space
from nas_core.space.slots import Rows

SPACE = get_space("hat_small")
FILES = ("config.yaml", "journal.jsonl", "state.json", "pareto.csv", "finalists.json")
KILLS = 20
MAX_DELAY_S = 0.03
EVALUATION_S = 0.003
TIMEOUT_S = 120.0
RESULT = Path(__file__).parents[1] / "results" / "search_robustness.json"


def latency_ms(rows: Rows) -> np.ndarray[Any, np.dtype[np.float64]]:
    return SPACE.slots.codes(rows).sum(1) / 100.0


def evaluate(architecture: Architecture) -> dict[str, float]:
    """Return a loss with an optimum inside the space; every 50th architecture fails."""
    time.sleep(EVALUATION_S)
    if int(architecture.key, 16) % 50 == 0:
        raise RuntimeError("out of memory")
    codes = SPACE.encode(architecture, "layers")[0].astype(np.float64)
    loss = ((codes - np.linspace(0.3, 0.9, len(codes))) ** 2).sum() + 0.5 * abs(codes[0] - codes[-1])
    return {"loss": float(loss)}


def _limit() -> list[Constraint]:
    return [Constraint("latency_ms", 30.0, latency_ms)]


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "random": lambda: RandomSearch(SPACE, _limit(), RandomConfig(evaluations=300), seed=1),
    "evolution": lambda: HATEvolution(
        SPACE,
        _limit(),
        EvolutionConfig(iterations=10, population=60, parents=15),
        seed=1,
    ),
    "ranknas": lambda: RankNAS(
        SPACE, _limit(), RankNASConfig(samples=60, rounds=6, per_round=15, candidates=300, generations=4), seed=1
    ),
    "multi-objective": lambda: MultiObjectiveEvolution(
        SPACE, _limit(), MultiObjectiveConfig(iterations=10, population=40), seed=1
    ),
}


def start(strategy: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.search.search_robustness"]
    command += ["--search", strategy, "--folder", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], env=environment)


def finish(strategy: str, folder: Path) -> None:
    if code := start(strategy, folder).wait(TIMEOUT_S):
        raise SystemExit(f"the search {strategy} in {folder} ended with code {code}")


def journal_length(folder: Path) -> int:
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kill_when(strategy: str, folder: Path, lines: int, delay_s: float) -> int | None:
    """Kill a search after its journal has a number of lines; return the lines, None if it ended before."""
    process = start(strategy, folder)
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None and journal_length(folder) < lines and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(delay_s)
    process.send_signal(signal.SIGKILL)
    return journal_length(folder) if process.wait(10) == -signal.SIGKILL else None


def fingerprints(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] for name in FILES}


def compare_runs(strategy: str, work: Path, kills: int, seed: int) -> dict[str, Any]:
    finish(strategy, work / "whole")
    evaluations = journal_length(work / "whole")
    rng = random.Random(seed)
    moments = sorted((rng.randrange(evaluations), rng.random() * MAX_DELAY_S) for _ in range(kills))
    lines_at_kill = [kill_when(strategy, work / "killed", *moment) for moment in moments]
    finish(strategy, work / "killed")
    uninterrupted, killed = fingerprints(work / "whole"), fingerprints(work / "killed")
    return {
        "strategy": strategy,
        "evaluations": evaluations,
        "failed_evaluations": (work / "whole" / "journal.jsonl").read_text().count('"error"'),
        "kills": sum(lines is not None for lines in lines_at_kill),
        "journal_lines_when_killed": [lines for lines in lines_at_kill if lines is not None],
        "identical": {name: killed[name] == uninterrupted[name] for name in FILES},
        "journal_sha256": uninterrupted["journal.jsonl"],
    }


def measure(strategies: Sequence[str], kills: int, seed: int) -> dict[str, Any]:
    rows = []
    for strategy in strategies:
        with tempfile.TemporaryDirectory() as work:
            rows.append(compare_runs(strategy, Path(work), kills, seed))
        print(json.dumps(rows[-1]), flush=True)
    return {
        "space": SPACE.name,
        "kills_aimed_at": kills,
        "seed": seed,
        "rows": rows,
        "all_identical": all(all(row["identical"].values()) for row in rows),
        "machine": {**describe_machine("cpu", 1), "python": platform.python_version(), "numpy": np.__version__},
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT, help="file of the result")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--kills", type=int, default=KILLS, help="kills per strategy")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    parser.add_argument("--search", choices=STRATEGIES, help="internal: only run this search in --folder")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.search:
        search({"search": STRATEGIES[arguments.search]()}, evaluate, arguments.folder, progress=False)
        return
    result = measure(arguments.strategies, arguments.kills, arguments.seed)
    write_result(arguments.out, result, command(__file__, argv))
    if not result["all_identical"]:
        raise SystemExit("the files of a killed search differ from those of an uninterrupted one")


if __name__ == "__main__":
    main()
