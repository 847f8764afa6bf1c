"""Gain of a predictor from published zero-cost proxies as additional inputs.

``python -m benchmarks proxy_inputs``. Published values (``zero_cost.json.gz`` of NASLib) cover a few hundred cells of
five tables. Predictors are trained on a draw of cells with and without proxies; Kendall's tau is measured on the other
cells. The baseline is the best single proxy, which needs no trained network. Results are stored in ``--work``.
"""

from __future__ import annotations

import argparse
import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.parts import published as _published
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import results
from nas_core.graph import (
    Graph,
    Graphs,
    nasbench201_graph,
    nasbench301_graph,
    transnasbench_macro_graph,
)
from nas_core.latency.machine import describe_machine
from nas_core.predictor import NNFormerPredictor, kendall_tau
from nas_core.proxies import PROXIES

RESULT = Path(__file__).parents[1] / "results" / "proxy_inputs.json"
OPERATION_101 = (0, 4, 3, 1, 2)
"""Names of the operation indices of NAS-Bench-101."""


def _cell_101(numbers: list[int]) -> Graph:
    """Convert 49 adjacency entries and 7 operations to a graph, which may have more edges than the benchmark allows."""
    ops = numbers[49:]
    nodes = ops.index(1) + 1
    matrix = np.array(numbers[:49]).reshape(7, 7)[:nodes, :nodes]
    return Graph.from_adjacency(matrix, [OPERATION_101[op] for op in ops[:nodes]])


READ = {
    "nasbench101/cifar10": _cell_101,
    "nasbench201/cifar10": nasbench201_graph,
    "nasbench301/cifar10": nasbench301_graph,
    "transnas_macro/class_object": lambda digits: transnasbench_macro_graph([each for each in digits if each]),
    "transnas_macro/jigsaw": lambda digits: transnasbench_macro_graph([each for each in digits if each]),
}
"""Table -> function that reads its architectures as graphs."""


@dataclass(frozen=True)
class Task:
    """Draw of training cells, with or without proxies."""

    table: str
    size: int
    draw: int
    proxies: bool
    settings: str = ""
    """Settings of the recipe ``statistics``: ``NAME=VALUE``, separated by commas"""

    @property
    def key(self) -> dict[str, Any]:
        key = {"table": self.table, "size": self.size, "draw": self.draw, "proxies": self.proxies}
        return {**key, "settings": self.settings}


@functools.cache
def table_of(name: str) -> tuple[Graphs, dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Return a table's graphs, scores by proxy, and validation accuracies in percent."""
    rows = [row for row in _published.zero_cost(name) if row["val_accuracy"] is not None]
    graphs = Graphs.of([READ[name](row["architecture"]) for row in rows])
    scores = {proxy: np.array([row.get(proxy, np.nan) for row in rows], np.float64) for proxy in PROXIES.names()}
    usable = {proxy: found for proxy, found in scores.items() if not np.isnan(found).all()}
    lowest = {proxy: np.where(np.isnan(found), -np.inf, found) for proxy, found in usable.items()}
    return graphs, lowest, np.array([row["val_accuracy"] for row in rows], np.float64)


def run(task: Task) -> dict[str, Any]:
    """Fit and evaluate one draw on one thread."""
    torch.set_num_threads(1)
    graphs, scores, accuracies = table_of(task.table)
    order = np.random.default_rng([task.draw, task.size]).permutation(len(accuracies))
    learned, unseen = order[: task.size], order[task.size :]
    changes = {
        name: int(value) for name, _, value in (each.partition("=") for each in task.settings.split(",") if each)
    }
    start = time.process_time()
    predictor = NNFormerPredictor("statistics", seed=task.draw, unseen="ignore", **changes)
    predictor.fit(graphs.take(learned), accuracies[learned], proxies=_of(scores, learned) if task.proxies else None)
    fit_s = time.process_time() - start
    predicted = predictor.predict(graphs.take(unseen), proxies=_of(scores, unseen) if task.proxies else None)
    proxy_taus = {name: kendall_tau(_finite(found[unseen]), accuracies[unseen]) for name, found in scores.items()}
    best = max(proxy_taus, key=lambda name: proxy_taus[name])
    return {
        **task.key,
        "tau": round(kendall_tau(predicted, accuracies[unseen]), 4),
        "alone": best,
        "tau_alone": round(proxy_taus[best], 4),
        "fit_cpu_s": round(fit_s, 2),
    }


def _of(scores: dict[str, NDArray[np.float64]], which: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    return {name: found[which] for name, found in scores.items()}


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.nan_to_num(values, neginf=-1e30, posinf=1e30)


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per table and number of cells, over draws that have both predictors."""
    by_key = {(r["table"], r["size"], r["draw"], r["proxies"]): r for r in records}
    rows = []
    for name, size in sorted({(table, size) for table, size, *_ in by_key}):
        draws = [d for d in range(100) if all((name, size, d, with_) in by_key for with_ in (False, True))]
        if not draws:
            continue
        without, proxied = (np.array([by_key[name, size, d, with_]["tau"] for d in draws]) for with_ in (False, True))
        first = by_key[name, size, draws[0], True]
        rows.append(
            {
                "table": name, "size": size, "draws": len(draws), "cells": len(table_of(name)[2]),
                "without": _rounded(without.mean()), "with": _rounded(proxied.mean()),
                "gain": _rounded((proxied - without).mean()), "least_gain": _rounded((proxied - without).min()),
                "proxies": list(table_of(name)[1]), "alone": first["alone"],
                "tau_alone": _rounded(np.mean([by_key[name, size, d, True]["tau_alone"] for d in draws])),
            }
        )  # fmt: skip
    return rows


def _rounded(value: Any) -> float:
    return round(float(value), 4)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(READ), help="of the published ones")
    parser.add_argument("--sizes", nargs="+", type=int, default=[32, 100, 156], help="cells to learn from")
    parser.add_argument("--draws", type=int, default=5, help="draws of these cells")
    parser.add_argument("--set", default="", help="NAME=VALUE of recipe statistics, by commas")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time; 0: in this process")
    parser.add_argument("--work", type=Path, default=Path("runs/proxy_inputs.jsonl"), help="values as they come")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    if wrong := [name for name in options.tables if name not in READ]:
        parser.error(f"--tables {wrong[0]} is unknown; expected some of {', '.join(READ)}")
    if reason := _published.absent(_published.ZERO_COST):
        print(f"skipped: {reason}")
        return 0
    tasks = [
        Task(name, size, draw, proxies, options.set)
        for draw in range(options.draws)
        for size in options.sizes
        for name in options.tables
        for proxies in (False, True)
    ]
    records = results(tasks, run, options.work, options.jobs)
    keys = {tuple(task.key.values()) for task in tasks}
    selected = [record for record in records if tuple(record[name] for name in tasks[0].key) in keys]
    content = {
        "settings": options.set,
        "fit_cpu_s": _rounded(np.median([record["fit_cpu_s"] for record in selected])),
        "rows": summary(selected),
        "machine": describe_machine("cpu", 1),
    }
    write_result(options.out, content, command(__file__, argv))
    for row in content["rows"]:
        print(row)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
