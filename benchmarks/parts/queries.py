"""Predictions for single graphs, and graph statistics of a whole benchmark.

Baselines in the same run are a plain forward pass of a network on precomputed codes, and statistics in float64, one
Gaussian process after another.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.parts.plain_nnformer import codes_of, plain_forward
from benchmarks.parts.random_graphs import accuracy_graphs, cells_with_accuracies
from benchmarks.parts.timing import compare_throughput
from nas_core.graph import Graph, Graphs
from nas_core.predictor import AccuracyModel, NNFormerPredictor, StatisticsPredictor
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.regressions import GaussianProcess

SINGLE_NETWORK = {"paper": {"epochs": 1}, "ensemble": {"epochs": 1, "members": 1}}
"""Recipes with one network and one epoch; training does not affect their speed."""
QUERIES = 20
"""Number of predictions per turn."""
TRAINED, FEW = 4236, 424
"""Number of cells for the fit of statistics, and for quick runs."""


def measure_network(recipe: str, repeats: int, name: str, device: str) -> dict[str, Any]:
    """Measure predictions with one network of a recipe, relative to its plain forward pass."""
    cells = accuracy_graphs(FEW)
    targets = np.random.default_rng(0).random(100)
    predictor = NNFormerPredictor(recipe, device=device, **SINGLE_NETWORK[recipe]).fit(cells[:100], targets)
    model, queries = predictor.models[0], cells[100 : 100 + 8 * QUERIES]
    plain_inputs = [codes_of(model, queries[i : i + 1]) for i in range(len(queries))]

    def plain(codes: Any) -> Tensor:
        with torch.inference_mode():
            return plain_forward(model, codes)

    return _compare_queries(list(queries), predictor, plain_inputs, plain, repeats, name)


def measure_statistics(repeats: int, name: str, quick: bool) -> dict[str, Any]:
    predictor, cells, *_ = _fit_statistics(quick)
    model, queries = predictor.statistics, cells[-8 * QUERIES :]
    plain_inputs = [queries[i : i + 1] for i in range(len(queries))]
    return _compare_queries(
        list(queries), predictor, plain_inputs, lambda graphs: plain_statistics(model, graphs), repeats, name
    )


def _compare_queries(
    queries: list[Graph],
    predictor: AccuracyModel,
    plain_inputs: list[Any],
    plain: Callable[[Any], object],
    repeats: int,
    name: str,
) -> dict[str, Any]:
    project_inputs, reference_inputs = itertools.cycle(queries), itertools.cycle(plain_inputs)
    runs = {
        "ours": lambda: [predictor.predict([next(project_inputs)]) for _ in range(QUERIES)],
        "plain": lambda: [plain(next(reference_inputs)) for _ in range(QUERIES)],
    }
    figures = compare_throughput(runs, QUERIES, repeats, name)
    rates, quantile = figures["graphs_per_s"], {"median": "median", "q25": "q75", "q75": "q25"}
    figures["ms"] = {key: {rank: round(1000 / row[quantile[rank]], 2) for rank in row} for key, row in rates.items()}
    figures["processor_ms"] = {key: round(_cpu_ms(run) / QUERIES, 2) for key, run in runs.items()}
    return figures


def _cpu_ms(run: Callable[[], object]) -> float:
    """Return the median CPU time in ms."""
    times_ms = []
    for _ in range(5):
        start = time.process_time()
        run()
        times_ms.append(1000 * (time.process_time() - start))
    return float(np.median(times_ms))


def measure_all_cells(quick: bool) -> dict[str, Any]:
    """Measure the fit of the model ``statistics`` and its predictions of all cells of NAS-Bench-101.

    Times are wall time and CPU time. The ratio to the plain computation is measured on some of the cells.
    """
    predictor, cells, total, fit_times = _fit_statistics(quick)
    model, graphs = predictor.statistics, cells[-2048:]
    results = {}
    for key, run in (("plain", lambda: plain_statistics(model, graphs)), ("ours", lambda: model.predict(graphs))):
        run_start = time.process_time()
        rows = run()
        results[key], results[f"{key} rows"] = time.process_time() - run_start, rows
    start, cpu_start = time.perf_counter(), time.process_time()
    predictor.predict(cells)
    scale = total / len(cells)
    seconds = {"seconds": time.perf_counter() - start, "processor_s": time.process_time() - cpu_start}
    return {
        "taught": predictor.info["graphs"],
        "cells": len(cells),
        **{key: round(value, 1) for key, value in fit_times.items()},
        **{key: round(value * scale, 1) for key, value in seconds.items()},
        "plain_times_ours": round(results["plain"] / results["ours"], 1),
        "largest_difference": float(np.abs(results["plain rows"] - results["ours rows"]).max()),
    }


def plain_statistics(model: StatisticsModel, graphs: Graphs) -> NDArray[np.float64]:
    """Compute :meth:`StatisticsModel.predict` in float64, one Gaussian process and tree after another."""
    values = model.description.describe(graphs)
    process_means = [
        _posterior(process, torch.from_numpy(values[:, columns.numpy()]))
        for process, columns in zip(model.processes, model.columns, strict=True)
    ]
    tree_means = [trees.predict(values) for trees in model.trees]
    return model.mean + model.deviation * np.stack([np.mean(process_means, 0), np.mean(tree_means, 0)])


def _posterior(process: GaussianProcess, values: Tensor) -> NDArray[np.float64]:
    scaled = ((values - process.mean) / process.deviation).clamp(-5, 5) * process.rates
    products = scaled @ process.points.T
    distances = scaled.square().sum(1)[:, None] + process.points.square().sum(1) - 2 * products
    kernel = process.variances[0] * torch.exp(-distances.clamp(min=0) / 2) + process.variances[1] * products
    return (kernel @ process.weights).numpy()


@functools.cache
def _fit_statistics(quick: bool) -> tuple[StatisticsPredictor, Graphs, int, dict[str, float]]:
    train_size, rng = FEW if quick else TRAINED, np.random.default_rng(0)
    graphs, targets = cells_with_accuracies(train_size + 4096)
    total, order = len(graphs), rng.permutation(len(graphs))
    rows = order[:train_size]
    start, cpu_start = time.perf_counter(), time.process_time()
    predictor = StatisticsPredictor().fit(graphs.take(rows), targets[rows])
    seconds = {"fit_seconds": time.perf_counter() - start, "fit_processor_s": time.process_time() - cpu_start}
    return predictor, graphs.take(order[:8192]) if quick else graphs, total, seconds
