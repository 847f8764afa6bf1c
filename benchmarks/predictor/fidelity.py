"""Kendall's tau of predictors that learn from long trainings alone, or from fewer long and many short ones.

Both cost the same. On NAS-Bench-101, whose cells were trained for 4, 12, 36 and 108 epochs, the cost is hours of
training: those published for 108 epochs, and that share of them for fewer. On NAS-Bench-201 (12 and 200 epochs) it is
epochs. Short trainings are of other cells than the long ones. Targets are validation accuracies, and predictors are
judged by those of the longest training of other cells.

How fidelities are learned was chosen on NAS-Bench-101; NAS-Bench-201 had no say in it.

Run: ``python -m benchmarks fidelity``; each fit is kept in a file beside the work and not computed again.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.brief.declared import Brief, Figure
from benchmarks.parts import published as _published
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import results
from nas_core.graph import Graphs
from nas_core.latency.machine import describe_machine
from nas_core.predictor import NNFormerPredictor, kendall_tau

RESULT = Path(__file__).parents[1] / "results" / "fidelity.json"
TABLES = {
    "nasbench101": (_published.NASBENCH101, _published.NASBENCH101_VALID),
    "nasbench201": (_published.NASBENCH201,),
}
JUDGED = 5000
"""Cells that a predictor is judged by, none of which it learned from."""
PLANS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "nasbench101": (
        (25, 25, 0), (37, 37, 0), (50, 50, 0), (75, 75, 0), (100, 100, 0), (150, 150, 0),
        (25, 20, 4), (50, 37, 12), (50, 37, 36), (100, 75, 12), (100, 75, 36),
    ),
    "nasbench201": ((37, 37, 0), (50, 50, 0), (75, 75, 0), (50, 37, 12)),
}  # fmt: skip
"""What the cost is that of, in long trainings; long trainings; epochs of the short ones that take the rest, 0: none."""
BRIEF = Brief(
    "--benchmark nasbench201 --draws 0",
    (
        Figure(
            "Kendall's tau, 37 long and the rest short trainings",
            ("rows", {"benchmark": "nasbench201", "long": 37, "epochs": 12}, "tau"),
            "",
        ),
        Figure(
            "the same, 50 long trainings alone",
            ("rows", {"benchmark": "nasbench201", "budget": 50, "epochs": 0}, "tau"),
            "",
        ),
    ),
    files=TABLES["nasbench201"],
)


@dataclass(frozen=True)
class Trained:
    """Cells with accuracies after trainings of different length."""

    graphs: Graphs
    accuracies: Mapping[int, NDArray[np.float64]]
    """``(G,)`` by epochs"""
    cost: NDArray[np.float64]
    """``(G,)`` of a long training: hours, or 1 where they are not published"""

    @property
    def longest(self) -> int:
        """Epochs of a long training."""
        return max(self.accuracies)


@dataclass(frozen=True)
class Task:
    """A predictor fitted to one draw of cells."""

    benchmark: str
    budget: int
    long: int
    epochs: int
    draw: int
    recipe: str = "statistics"

    @property
    def key(self) -> dict[str, Any]:
        return dict(vars(self))


@functools.cache
def trained(benchmark: str) -> Trained:
    """All cells of a benchmark that were trained for different lengths."""
    if benchmark == "nasbench201":
        graphs, accuracies = _published.nasbench201_lengths()
        return Trained(graphs, accuracies, np.ones(len(graphs)))
    rows, accuracies, seconds = _published.nasbench101_lengths()
    return Trained(_published.nasbench101()[0].take(rows), accuracies, seconds / 3600)


def chosen(cells: Trained, task: Task, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells that are trained for long, and cells that are trained for short, which together cost at most what the first
    ``budget`` cells cost in long trainings."""
    long = order[: task.long]
    if not task.epochs:
        return long, order[:0]
    left = cells.cost[order[: task.budget]].sum() - cells.cost[long].sum()
    others = order[task.long : -JUDGED]
    spent = np.cumsum(cells.cost[others]) * task.epochs / cells.longest
    return long, others[: int(np.searchsorted(spent, left + 1e-9, side="right"))]


def run(task: Task) -> dict[str, Any]:
    """Fit and judge one predictor, on one thread."""
    torch.set_num_threads(1)
    cells = trained(task.benchmark)
    order = np.random.default_rng([task.draw, 101]).permutation(len(cells.graphs))
    long, short = chosen(cells, task, order)
    rows, judged = np.concatenate([short, long]), order[-JUDGED:]
    epochs = np.repeat([task.epochs, cells.longest], [len(short), len(long)])
    accuracies = [cells.accuracies[each][some] for each, some in ((task.epochs, short), (cells.longest, long))
                  if len(some)]  # fmt: skip
    start = time.process_time()
    predictor = NNFormerPredictor(task.recipe, seed=task.draw, unseen="warn")
    predictor.fit(cells.graphs.take(rows), np.concatenate(accuracies), fidelity=epochs)
    fitted = time.process_time() - start
    predicted, spread = predictor.predict_with_spread(cells.graphs.take(judged))
    wanted = cells.accuracies[cells.longest][judged]
    away = np.abs(wanted - predicted) / spread
    share = task.epochs / cells.longest
    return {
        **task.key,
        "short": len(short),
        "cost": round(float(cells.cost[long].sum() + share * cells.cost[short].sum()), 3),
        "tau": round(kendall_tau(predicted, wanted), 4),
        "within_one": round(float((away <= 1).mean()), 4),
        "within_two": round(float((away <= 2).mean()), 4),
        "fit_cpu_s": round(fitted, 1),
    }


def summary(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each plan: means over the draws, and what short trainings add to tau at the same cost, draw by
    draw."""
    plans: dict[tuple[Any, ...], dict[int, Mapping[str, Any]]] = {}
    for record in records:
        plans.setdefault(_plan(record), {})[record["draw"]] = record
    return [_row(plan, found, plans) for plan, found in sorted(plans.items())]


def _plan(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("benchmark", "recipe", "budget", "epochs", "long"))


def _row(
    plan: tuple[Any, ...], found: Mapping[int, Mapping[str, Any]], plans: Mapping[Any, Mapping[int, Mapping[str, Any]]]
) -> dict[str, Any]:
    benchmark, recipe, budget, epochs, long = plan
    alone = plans.get((benchmark, recipe, budget, 0, budget), {})
    pairs = [record["tau"] - alone[draw]["tau"] for draw, record in found.items() if draw in alone]
    means = {
        name: round(float(np.mean([record[name] for record in found.values()])), 4)
        for name in ("short", "cost", "tau", "within_one", "within_two", "fit_cpu_s")
    }
    return {
        **{"benchmark": benchmark, "recipe": recipe, "budget": budget, "epochs": epochs, "long": long},
        **means,
        "deviation": round(float(np.std([record["tau"] for record in found.values()])), 4),
        "draws": len(found),
        "gain": round(float(np.mean(pairs)), 4) if epochs and pairs else None,
        "better_draws": sum(pair > 0 for pair in pairs) if epochs and pairs else None,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", nargs="+", choices=list(PLANS), default=list(PLANS))
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of the cells")
    parser.add_argument("--recipe", default="statistics", help="recipe of the predictor")
    parser.add_argument("--jobs", type=int, default=0, help="fits at a time; 0: in this process")
    parser.add_argument("--work", type=Path, default=Path("runs/fidelity.jsonl"), help="results as they come")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    here = []
    for name in options.benchmark:
        reasons = [reason for table in TABLES[name] if (reason := _published.absent(table))]
        print(*(f"{name} is left out: {reason}" for reason in reasons), sep="\n", end="\n" if reasons else "")
        here += [] if reasons else [name]
    if not here:
        return 0
    tasks = [Task(name, *plan, draw, options.recipe) for draw in options.draws for name in here for plan in PLANS[name]]
    keys = [task.key for task in tasks]
    records = results(tasks, run, options.work, options.jobs)
    asked = [record for record in records if {name: record[name] for name in keys[0]} in keys]
    rows = summary(asked)
    machine = describe_machine("cpu", 1)
    write_result(options.out, {"judged": JUDGED, "rows": rows, "machine": machine}, command(__file__, argv))
    for row in rows:
        print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
