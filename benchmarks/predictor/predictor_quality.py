"""Kendall's tau of accuracy predictors, as in Tables 1, 2 and 6 of the NN-Former paper and on other benchmarks.

Run: ``python -m benchmarks predictor_quality --benchmark nasbench101 --sizes 100 172 --methods statistics ensemble``.
Results are stored in ``--work`` and reused; ``--jobs 2`` runs two processes.

On NAS-Bench-101 and -201, training cells are random (on the first, among those with a published validation accuracy)
and targets are validation accuracies. Tau is measured on all cells against mean test accuracy. See
``benchmarks/parts/accuracy/tables.py`` for other benchmarks. Final weights are evaluated.

Rows also have the rank of the best of the 50 top predictions, tau among the best tenth, interval coverage, and tau of
each part of a weighted mean of models.

``--judged 40000`` evaluates a sample of the cells (tau changes by about .003). ``--validate`` evaluates on validation
accuracies outside the training set, to choose settings. ``--upper-bound`` trains on mean test accuracies. ``--device
cuda`` trains the recipe ``paper`` as published, for all eight columns of Tables 1 and 2, one draw each. A run that is
interrupted or reaches ``--limit-s`` resumes.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.parts import published as _published
from benchmarks.parts.accuracy.methods import (
    DEFAULT_METHODS,
    METHODS,
    TEST_LABELS,
    make_predictor,
    recipe_of,
    settings_of,
    trains_networks,
)
from benchmarks.parts.accuracy.metrics import interval_coverage, predict_components, predict_with_std, search_gain
from benchmarks.parts.accuracy.rows import PUBLISHED_TAU, summary
from benchmarks.parts.accuracy.splits import HeldOut, Split, split
from benchmarks.parts.accuracy.tables import BENCHMARKS
from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import OutOfTimeError, merge_rows, results, settings_hash, time_limit_callback
from nas_core.device import device_name
from nas_core.errors import ConfigError, NasExtError
from nas_core.latency.machine import describe_machine
from nas_core.options import parsed_settings
from nas_core.predictor import NNFormerPredictor, StatisticsPredictor, kendall_tau
from nas_core.predictor.recipes import recipe_types

RESULTS = Path(__file__).parents[1] / "results"
GPU_BENCHMARKS = ("nasbench101", "nasbench201")
"""Benchmarks of the paper's tables, trained on a GPU."""


@dataclass(frozen=True)
class Task:
    benchmark: str
    size: int
    draw: int
    method: str
    changes: tuple[tuple[str, Any], ...]
    """Changes of the recipe's settings."""
    validate: bool
    judged: int | None = None
    """Number of evaluation cells; None for all."""
    device: str = "cpu"
    """Device of NN-Former."""
    upper_bound: bool = False
    """Train on mean test accuracies."""

    @property
    def key(self) -> dict[str, Any]:
        changes = "".join(f", {name} {value}" for name, value in self.changes)
        on = "valid" if self.validate else "test"
        settings = settings_of(self.method, self.size, self.changes)
        return {
            "benchmark": self.benchmark,
            "size": self.size,
            "draw": self.draw,
            "method": self.method + changes + (TEST_LABELS if self.upper_bound else ""),
            "on": on,
            "judged": "all" if self.judged is None else self.judged,
            **({} if settings is None else {"settings": settings}),
            **({} if self.device == "cpu" else {"device": device_name(self.device)}),
        }


def split_of(task: Task) -> Split:
    return split(
        BENCHMARKS[task.benchmark], task.size, task.draw, task.judged, task.validate, test_labels=task.upper_bound
    )


def predictor_of(task: Task) -> Any:
    return make_predictor(task.method, BENCHMARKS[task.benchmark].graph_limits, task.draw, task.device, task.changes)


def run(task: Task, unfinished: Path | None = None, until: float = float("inf")) -> dict[str, Any]:
    """Fit and evaluate one predictor on one thread.

    Args:
        unfinished: folder of interrupted trainings.
        until: value of the monotonic clock at which to stop.

    Raises:
        OutOfTimeError: the time limit is reached.
    """
    torch.set_num_threads(1)
    progress = time_limit_callback(until, f"{task.benchmark}, {task.size} cells, {task.method}")
    data = split_of(task)
    start, cpu_start = time.perf_counter(), time.process_time()
    predictor = predictor_of(task)
    if unfinished is None or not isinstance(predictor, NNFormerPredictor):
        predictor.fit(data.graphs, data.targets)
    else:
        unfinished.mkdir(parents=True, exist_ok=True)
        checkpoint = unfinished / settings_hash(task.key)
        predictor.fit(data.graphs, data.targets, progress=progress, checkpoint=checkpoint)
    fit_end, fit_cpu_s = time.perf_counter(), time.process_time() - cpu_start
    predicted = predictor.predict(data.eval_graphs)
    times = {"fit_s": fit_end - start, "fit_cpu_s": fit_cpu_s, "predict_s": time.perf_counter() - fit_end}
    search = search_gain(predicted, data.eval_accuracies, BENCHMARKS[task.benchmark].higher_is_better)
    return {
        **task.key,
        "tau": kendall_tau(predicted, data.eval_accuracies),
        "cells": len(data.eval_accuracies),
        **search,
        **({} if data.held_out is None else _held_out_metrics(predictor, data.held_out)),
        **{
            name: value
            for name, value in getattr(predictor, "info", {}).items()
            if name == "precision" and unfinished is not None
        },
        **{name: round(value, 1) for name, value in times.items()},
    }


def _held_out_metrics(predictor: Any, held_out: HeldOut) -> dict[str, Any]:
    predicted, std = predict_with_std(predictor, held_out.graphs)
    figures: dict[str, Any] = {"tau_as_told": kendall_tau(predicted, held_out.observed)}
    if std is not None:
        figures |= interval_coverage(predicted, std, held_out.observed)
    if components := predict_components(predictor, held_out.graphs):
        predictions = {"whole": predicted, **components}
        figures["parts"] = {name: kendall_tau(component, held_out.true) for name, component in predictions.items()}
    return figures


def main(argv: list[str] | None = None) -> None:
    options = _parser().parse_args(argv)
    on_gpu = torch.device(options.device).type != "cpu"
    options.out = options.out or RESULTS / ("cuda" if on_gpu else "") / "predictor_quality.json"
    options.work = options.work or Path("runs") / f"predictor_quality{'_cuda' if on_gpu else ''}.jsonl"
    options.methods = options.methods or (["paper"] if on_gpu else list(DEFAULT_METHODS))
    options.benchmark = options.benchmark or (GPU_BENCHMARKS if on_gpu else tuple(BENCHMARKS))
    try:
        tasks = _tasks(options, on_gpu)
    except NasExtError as error:
        raise SystemExit(f"predictor_quality: error: {error}") from None

    def write(records: list[dict[str, Any]]) -> None:
        if not options.validate and records:
            rows = merge_rows(options.out, summary(records), ("benchmark", "size", "method"))
            content = {"rows": rows, "machine": describe_machine(options.device, 1)}
            write_result(options.out, content, command(__file__, argv), adds=True)

    if not on_gpu:
        write(results(tasks, run, options.work, options.jobs))
        return
    run_task = functools.partial(run, unfinished=options.work.with_suffix(""), until=time.monotonic() + options.limit_s)
    try:
        write(results(tasks, run_task, options.work, 0, write))
    except OutOfTimeError as error:
        raise SystemExit(f"predictor_quality: stopped, {error}; the same command resumes") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--benchmark", nargs="+", choices=BENCHMARKS, help=f"default: all; on a GPU {' '.join(GPU_BENCHMARKS)}"
    )
    parser.add_argument("--sizes", nargs="+", type=int, help="training cells; default: those of each benchmark")
    draws_help = "seeds of the draws; default: 0 1 2 3 4; 0 1 2 for methods that train networks; 0 on a GPU"
    parser.add_argument("--draws", nargs="+", type=int, help=draws_help)
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, help=f"default: {' '.join(DEFAULT_METHODS)}; on a GPU paper"
    )
    parser.add_argument("--device", default="cpu", help="device of NN-Former: cpu, cuda or cuda:1")
    parser.add_argument("--limit-s", type=float, default=float("inf"), help="time limit in seconds, on a GPU")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="changed settings of the method")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    cells_help = "number of random evaluation cells, for benchmarks evaluated on all cells"
    parser.add_argument("--judged", type=int, metavar="CELLS", help=cells_help)
    parser.add_argument(
        "--validate", action="store_true", help="evaluate on validation accuracies of cells outside the training set"
    )
    bound_help = "train on mean test accuracies: an upper bound without label noise"
    parser.add_argument("--upper-bound", action="store_true", help=bound_help)
    parser.add_argument("--work", type=Path, help="file of single results; default: in runs")
    parser.add_argument("--out", type=Path, help="default: in benchmarks/results, on a GPU in benchmarks/results/cuda")
    return parser


def _tasks(options: argparse.Namespace, on_gpu: bool) -> list[Task]:
    """Return all fits for the benchmarks whose tables are available.

    Raises:
        NasExtError: settings contradict each other, or a method cannot be trained on a benchmark.
    """
    types = {**StatisticsPredictor.setting_types(), **recipe_types(), "width": int, "layers": int}
    changes = tuple(parsed_settings(options.set, types).items())
    for method in options.methods:
        recipe = recipe_of(method, changes)
        latency_benchmarks = [name for name in options.benchmark if not BENCHMARKS[name].higher_is_better]
        if latency_benchmarks and recipe is not None and recipe.targets == "none":
            raise ConfigError(
                f"method {method!r} predicts fractions, but {latency_benchmarks[0]} has milliseconds; remove one"
            )
    sizes = {
        name: tuple(PUBLISHED_TAU[name]) if on_gpu and name in PUBLISHED_TAU else BENCHMARKS[name].sizes
        for name in BENCHMARKS
    }
    return [
        Task(benchmark, size, draw, method, changes, options.validate, eval_count, options.device, options.upper_bound)
        for benchmark in available(options.benchmark)
        for eval_count in [_eval_count(benchmark, options.judged)]
        for size in options.sizes or sizes[benchmark]
        for method in options.methods
        for draw in options.draws or range(1 if on_gpu else 3 if trains_networks(method) else 5)
    ]


def _eval_count(benchmark: str, cells: int | None) -> int | None:
    subset = (
        cells is not None and BENCHMARKS[benchmark].evaluates_all and cells < len(BENCHMARKS[benchmark].load().graphs)
    )
    return cells if subset else None


def available(benchmarks: Iterable[str]) -> list[str]:
    """Return the benchmarks whose tables are available; print why others are skipped."""
    available = []
    for benchmark in benchmarks:
        reasons = [reason for file in BENCHMARKS[benchmark].files if (reason := _published.absent(file))]
        print(*(f"skipped {benchmark}: {reason}" for reason in reasons), sep="\n", end="\n" if reasons else "")
        available += [] if reasons else [benchmark]
    return available


if __name__ == "__main__":
    main()
