"""Latency of NAS-Bench-201's networks on several devices, from some hundred measured ones.

The devices' tables are published (``latency_nasbench201.npz``). Graphs are not pruned: a device also computes what
reaches no output. Training cells are drawn at random, all others are the test; no checkpoint is chosen.

Run: ``python -m benchmarks predictor_latency``; results are kept as they come, see ``--work``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.brief.declared import Brief, Figure
from benchmarks.parts import published as _published
from benchmarks.parts.baselines import GCN, Linear, Trees
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merged, results, settings_hash
from nas_core.latency.machine import describe_machine
from nas_core.predictor import NNFormerPredictor, Recipe, accuracy_within, get_recipe, kendall_tau, mape

RESULT = Path(__file__).parents[1] / "results" / "predictor_latency.json"
DEVICES = ("1080ti_1", "gold_6226", "pixel2")
"""A GPU, a server's CPU, a phone (whole milliseconds)."""
LINEAR = {"targets": "mean", "processes": 1, "trees": 0}
"""Milliseconds, not ranks; and one process that sees all statistics, since latency is nearly their sum."""
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "latency": ("latency", {}),
    "latency, global": ("latency", {"attention": "global"}),
    "best": ("best", {"members": 1, **LINEAR}),
    "statistics": ("statistics", LINEAR),
}
METHODS = (*RECIPES, "linear", "lightgbm", "gcn")
FIGURES = ("mape", "within_10", "tau")
BRIEF = Brief(
    "--devices gold_6226 --draws 0 --methods linear lightgbm",
    (
        Figure(
            "error of a linear model, 900 cells measured on a CPU",
            ("rows", {"device": "gold_6226", "size": 900, "method": "linear"}, "mape"),
            "%",
        ),
    ),
    files=(_published.NASBENCH201_LATENCY,),
)


@dataclass(frozen=True)
class Task:
    device: str
    size: int
    draw: int
    method: str

    @property
    def key(self) -> dict[str, Any]:
        settings = settings_of(self.method, self.size)
        key = {"device": self.device, "size": self.size, "draw": self.draw, "method": self.method}
        return key if settings is None else {**key, "settings": settings}


def recipe_of(method: str) -> Recipe | None:
    """Return the recipe of an NN-Former method; None for the others."""
    if method not in RECIPES:
        return None
    name, changes = RECIPES[method]
    return get_recipe(name).changed(**changes)


def settings_of(method: str, size: int) -> str | None:
    """Short name of the settings of an NN-Former method with so many training cells; None for the others."""
    recipe = recipe_of(method)
    return None if recipe is None else settings_hash(recipe.adapted(size).to_dict())


def run(task: Task) -> dict[str, Any]:
    """Fit and judge one predictor, on one thread."""
    torch.set_num_threads(1)
    graphs, latencies = _published.nasbench201_latency(task.device)
    order = np.random.default_rng([task.draw, 201]).permutation(len(graphs))
    train, test = order[: task.size], order[task.size :]
    recipe = recipe_of(task.method)
    made: Any
    if recipe is not None:
        made = NNFormerPredictor(recipe, seed=task.draw)
    elif task.method == "gcn":
        made = GCN(7, task.draw)
    else:
        made = Linear(7) if task.method == "linear" else Trees(7, 8, True, task.draw)
    start = time.process_time()
    made.fit(graphs.take(train), latencies[train])
    used = time.process_time() - start
    predicted, wanted = made.predict(graphs.take(test)), latencies[test]
    figures = (mape(predicted, wanted), accuracy_within(predicted, wanted), kendall_tau(predicted, wanted))
    return {**task.key, **dict(zip(FIGURES, figures, strict=True)), "fit_cpu_s": round(used, 1)}


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each device, size and method: means over draws, of records of today's settings."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for record in records:
        if record.get("settings") not in (None, settings_of(record["method"], record["size"])):
            continue
        groups.setdefault((record["device"], record["size"], record["method"]), []).append(record)
    return [
        {
            **dict(zip(("device", "size", "method"), key, strict=True)),
            "draws": len(found),
            **{name: round(float(np.mean([r[name] for r in found])), 4) for name in (*FIGURES, "fit_cpu_s")},
            "mape_deviation": round(float(np.std([r["mape"] for r in found], ddof=1)), 4) if len(found) > 1 else None,
        }
        for key, found in sorted(groups.items())
    ]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", nargs="+", default=list(DEVICES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[900], help="training cells")
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of the draws")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    parser.add_argument("--work", type=Path, default=Path("runs/predictor_latency.jsonl"), help="results as they come")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    tasks = [
        Task(device, size, draw, method)
        for method in options.methods
        for device in options.devices
        for size in options.sizes
        for draw in options.draws
    ]
    records = results(tasks, run, options.work, options.jobs)
    rows = merged(options.out, summary(records), ("device", "size", "method"))
    write_result(options.out, {"rows": rows, "machine": describe_machine("cpu", 1)}, command(__file__, argv), adds=True)


if __name__ == "__main__":
    main()
