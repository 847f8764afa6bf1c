"""Model ``prior`` on held-out search spaces, without and with a few trained networks.

``python -m benchmarks prior --judged 40000``. Each space, with all its tasks, is held out in turn, and a prior is
fitted to the others. Targets are ranks within a benchmark, of test accuracies if available. The baseline is the best
published zero-cost proxy. Then the models ``prior`` and ``statistics`` are fitted to the same few networks. Draws,
targets and evaluated networks are those of ``predictor_quality``. Results are stored in ``--work``. ``--write`` fits
the shipped prior to all available spaces.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.parts import published as _published
from benchmarks.parts.accuracy.metrics import interval_coverage, search_gain
from benchmarks.parts.accuracy.splits import Split, split
from benchmarks.parts.accuracy.tables import BENCHMARKS
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import results
from nas_core.latency.machine import describe_machine
from nas_core.predictor import PriorPredictor, StatisticsPredictor, kendall_tau
from nas_core.predictor.artifact import write_artifact
from nas_core.predictor.prior import FILE, KIND, Benchmark, Prior
from nas_core.predictor.statistics.operation_features import operation_features

RESULT = Path(__file__).parents[1] / "results" / "prior.json"
NETWORKS = 4000
"""Largest number of random networks of a benchmark in a prior's training data."""
SPACES = {
    "nasbench101": ("nasbench101",),
    "nasbench201": ("nasbench201",),
    "nasbench301": ("nasbench301",),
    "transnas": ("transnas_object", "transnas_jigsaw"),
}
"""Search space -> its benchmarks."""
SIZES = {
    "nasbench101": (20, 100), "nasbench201": (20, 78, 156), "nasbench301": (20, 100), "transnas_object": (20, 100),
    "transnas_jigsaw": (20, 100),
}  # fmt: skip
"""Numbers of trained networks."""
AIMS = {
    ("nasbench101", 0): 0.60, ("nasbench101", 20): 0.62, ("nasbench101", 100): 0.76, ("nasbench201", 0): 0.66,
    ("nasbench201", 78): 0.80, ("nasbench201", 156): 0.84, ("nasbench301", 0): 0.39, ("transnas_object", 0): 0.58,
}  # fmt: skip
PROXIES = {
    "nasbench101": "nasbench101/cifar10", "nasbench201": "nasbench201/cifar10", "nasbench301": "nasbench301/cifar10",
    "transnas_object": "transnas_macro/class_object", "transnas_jigsaw": "transnas_macro/jigsaw",
}  # fmt: skip
"""Benchmark -> its published zero-cost proxies."""
_NASLIB = {"source": "NASLib, zero-cost proxies", "licence": "Apache-2.0"}
SOURCES: dict[str, dict[str, str]] = {
    "nasbench101": {"source": "NAS-Bench-101, by way of FreeREA", "licence": "Apache-2.0, MIT"},
    "nasbench201": {"source": "NATS-Bench and NASLib", "licence": "MIT, Apache-2.0"},
    **dict.fromkeys(("nasbench301", "transnas_object", "transnas_jigsaw"), _NASLIB),
}


@dataclass(frozen=True)
class Task:
    benchmark: str
    size: int
    """Number of trained networks"""
    draw: int
    model: str
    judged: int | None = None

    @property
    def key(self) -> dict[str, Any]:
        return {**vars(self), "judged": "all" if self.judged is None else self.judged}


@functools.cache
def training_benchmark(name: str, weight: float) -> Benchmark:
    table = BENCHMARKS[name].load()
    rows = np.sort(np.random.default_rng(1).permutation(len(table.graphs))[:NETWORKS])
    return Benchmark(operation_features(table.graphs.take(rows)), table.true[rows], weight)


@functools.cache
def fit_prior(space: str | None) -> Prior:
    weights = [
        (name, 1 / len(names)) for name_of_space, names in SPACES.items() if name_of_space != space for name in names
    ]
    return Prior.fit([training_benchmark(name, weight) for name, weight in weights])


def run(task: Task) -> dict[str, Any]:
    """Evaluate one predictor on one thread."""
    torch.set_num_threads(1)
    space = next(space for space, names in SPACES.items() if task.benchmark in names)
    data = split(BENCHMARKS[task.benchmark], max(task.size, 2), task.draw, task.judged, False)
    settings: dict[str, Any] = {"seed": task.draw, "unseen": "warn"}
    if task.model == "prior":
        predictor: StatisticsPredictor = PriorPredictor(prior=fit_prior(space), **settings)
    else:
        predictor = StatisticsPredictor(**settings)
    if task.size:
        predictor.fit(data.graphs, data.targets)
    predicted = predictor.predict(data.eval_graphs)
    figures = {"tau": kendall_tau(predicted, data.eval_accuracies), **search_gain(predicted, data.eval_accuracies)}
    return {**task.key, **figures, **(_coverage(predictor, data) if task.size else {})}


def _coverage(predictor: StatisticsPredictor, data: Split) -> dict[str, float]:
    assert data.held_out is not None
    values = predictor.predict_with_std(data.held_out.graphs)
    return interval_coverage(*values, data.held_out.observed)


def best_proxy(name: str) -> dict[str, Any]:
    """Return the published zero-cost proxy with the largest Kendall's tau."""
    rows = _published.zero_cost(PROXIES[name])
    accuracies = np.array([row["val_accuracy"] for row in rows])
    proxies = {key for row in rows for key in row} - {"architecture", "val_accuracy"}
    taus = {key: _tau([row.get(key) for row in rows], accuracies) for key in sorted(proxies)}
    best = max(taus, key=lambda key: taus[key])
    return {"proxy": best, "proxy_tau": round(taus[best], 4)}


def _tau(values: list[float | None], accuracies: NDArray[np.float64]) -> float:
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    finite = np.isfinite(numbers)
    return float(kendall_tau(numbers[finite], accuracies[finite])) if finite.sum() > 1 else 0.0


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["benchmark"], record["size"], record["model"]), []).append(record)
    rows = []
    for (benchmark, size, model), draws in sorted(groups.items()):
        taus = [record["tau"] for record in draws]
        numbers = ("best_of_50", "tau_top_tenth", "within_1", "within_2")
        row = {
            "benchmark": benchmark, "size": size, "model": model, "draws": len(draws),
            "tau": round(float(np.mean(taus)), 4),
            "deviation": round(float(np.std(taus, ddof=1)), 4) if len(taus) > 1 else None,
            **{name: round(float(np.mean([r[name] for r in draws])), 4) for name in numbers if name in draws[0]},
            "judged": draws[0]["judged"], "aim": AIMS.get((benchmark, size)),
        }  # fmt: skip
        rows.append(row | (best_proxy(benchmark) if size == 0 else {}))
    return rows


def write() -> None:
    names = [name for names in SPACES.values() for name in names]
    networks = {name: min(NETWORKS, len(BENCHMARKS[name].load().graphs)) for name in names}
    benchmarks = [{"name": name, "networks": networks[name], **SOURCES[name]} for name in names]
    write_artifact(FILE, KIND, {"benchmarks": benchmarks}, fit_prior(None).to_tensors())
    print(f"{FILE.name}: {FILE.stat().st_size / 1e3:.0f} kB")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="seeds of the draws")
    parser.add_argument("--judged", type=int, metavar="CELLS", help="number of random evaluation cells")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--work", type=Path, default=Path("runs") / "prior.jsonl", help="file of single results")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--write", action="store_true", help="fit and write the prior of the package")
    options = parser.parse_args(argv)
    files = {file for names in SPACES.values() for name in names for file in BENCHMARKS[name].files}
    if reasons := sorted(reason for file in files if (reason := _published.absent(file))):
        raise SystemExit(f"prior: error: {reasons[0]}")
    if options.write:
        write()
        return
    tasks = [
        Task(name, size, draw, model, options.judged if BENCHMARKS[name].evaluates_all else None)
        for name in options.benchmark
        for size in (0, *SIZES[name])
        for model in (["prior", "statistics"] if size else ["prior"])
        for draw in (options.draws if size else [0])
    ]
    rows = summary(results(tasks, run, options.work, options.jobs))
    write_result(options.out, {"rows": rows, "machine": describe_machine("cpu", 1)}, command(__file__, argv))


if __name__ == "__main__":
    main()
