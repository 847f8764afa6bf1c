"""Errors of the shipped latency model on this machine: unchanged, and adapted by one factor.

``python -m benchmarks adapted_latency --data FOLDER`` measures random networks of all families, as ``nas-ext latency
dataset --set clock=cpu``, and then the first of them again, in FOLDER_again; the same command resumes. The first two
thirds of the networks of each family are for adaptation: a draw has one network of each of ten or thirteen random
families. The last third is the test set. Baselines without the shipped model are ridge regressions of log latency on
log FLOPs, and on four log costs. All standard deviations but that of the unchanged model are from leave-one-out errors.

``again_percent`` is the median change of latencies measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.parts.accuracy.metrics import interval_coverage
from benchmarks.parts.record import command, write_result
from nas_core.errors import NasExtError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KIND_NAMES
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.collect import NetworkSetConfig, collect_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet, load_networks, measured_on
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.registry import network_families
from nas_core.latency.by_graph.predict import device_of, shipped_model
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import TimingConfig
from nas_core.predictor.mixture import calibration_factor
from nas_core.predictor.statistics.regressions import mean_ridge

RESULT = Path(__file__).parents[1] / "results" / "adapted_latency.json"
SEED = 1
"""Seed of the networks; differs from that of the training data."""
SIZES, DRAWS = (10, 13), 20
AIMS = {"median_error_percent": 8.0, "within_1_percent": [60.0, 76.0]}

MATRIX = [KIND_NAMES.index(name) for name in ("conv", "conv_transpose", "gemm", "matmul", "attention")]

Array = NDArray[np.float64]
Estimate = tuple[Array, Array]
"""Latencies in ms and their standard deviations"""


def draw_networks(families: NDArray[np.str_], size: int, draw: int) -> NDArray[np.int64]:
    """Return the indices of one network of each of ``size`` random families."""
    rng = np.random.default_rng([draw, size])
    sampled_families = rng.permutation(np.unique(families))[:size]
    return np.array([rng.choice(np.flatnonzero(families == name)) for name in sampled_families])


def log_costs(graphs: Graphs) -> Array:
    """Return logarithms ``(G, 4)`` of GFLOPs, activations (timm's definition), parameters and memory access."""
    assert graphs.static is not None and graphs.shapes is not None
    network = np.repeat(np.arange(len(graphs)), graphs.sizes)
    outputs = np.maximum(graphs.shapes.astype(np.float64), 1).prod(1) * np.isin(graphs.ops, MATRIX)
    activations = np.bincount(network, outputs, len(graphs)) / 1e6
    columns = np.column_stack([graphs.static[:, 1], activations, graphs.static[:, 2], graphs.static[:, 3]])
    return np.asarray(np.log(np.maximum(columns, 1e-6)), np.float64)


def ridge(train_ms: Array, train_inputs: Array, inputs: Array) -> Estimate:
    weights, offset, held_out_ms = mean_ridge(train_inputs, np.log(train_ms))
    predicted = np.exp(inputs @ weights + offset)
    return predicted, predicted * calibration_factor(np.abs(train_ms / np.exp(held_out_ms) - 1))


def estimates(model: GraphLatencyModel, raw: Estimate, data: NetworkLatencies, rows: Any, test: Any) -> dict[str, Any]:
    """Return method -> estimates of the networks ``test``, adapted to the networks ``rows``."""
    measured, costs = data.latency_ms[rows], log_costs(data.graphs)
    adapted = model.adapt(data.take(rows), {"device_name": "here"}).predict_with_std(data.graphs.take(test))
    model.info.pop("factor")
    return {
        "unchanged": (raw[0][test], raw[1][test]),
        "one factor": adapted,
        "ridge on FLOPs": ridge(measured, costs[rows, :1], costs[test, :1]),
        "ridge on costs": ridge(measured, costs[rows], costs[test]),
    }


def error_metrics(estimate: Estimate, measured: Array) -> dict[str, float]:
    predicted, deviation = estimate
    coverage = interval_coverage(predicted, deviation, measured)
    percent = {f"{name}_percent": 100 * share for name, share in coverage.items()}
    return {"median_error_percent": 100 * float(np.median(np.abs(predicted - measured) / measured)), **percent}


def rows_of(model: GraphLatencyModel, data: NetworkLatencies, draws: int) -> list[dict[str, Any]]:
    """Return a row per number of networks and method, with means over draws and the range of the coverage."""
    numbers = np.array([int(name.rpartition("_")[2]) for name in data.names])
    is_test = numbers >= (numbers.max() + 1) * 2 // 3
    pool, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    key = {"of": device_of(model), "model": model.name, "runtime": model.info["runtime"], "test": len(test)}
    raw, rows = model.predict_with_std(data.graphs), []
    for size in SIZES:
        results: dict[str, list[dict[str, float]]] = {}
        for draw in range(draws):
            train_rows = pool[draw_networks(data.families[pool], size, draw)]
            for method, estimate in estimates(model, raw, data, train_rows, test).items():
                results.setdefault(method, []).append(error_metrics(estimate, data.latency_ms[test]))
        for method, metrics in results.items():
            means = {name: round(float(np.mean([row[name] for row in metrics])), 2) for name in metrics[0]}
            errors, shares = ([row[name] for row in metrics] for name in ("median_error_percent", "within_1_percent"))
            ranges = {"errors": [min(errors), max(errors)], "within_1": [min(shares), max(shares)]}
            range_columns = {
                f"range_{name}_percent": [round(value, 2) for value in pair] for name, pair in ranges.items()
            }
            rows.append({**key, "networks": size, "method": method, "draws": draws, **means, **range_columns})
    return rows


def changes_percent(first: NetworkSet, second: NetworkSet) -> dict[str, float]:
    """Return the median change of the latencies of networks that were measured twice, by runtime."""
    measured, changes = {row["name"]: row for row in first.rows if "error" not in row}, {}
    for runtime in second.reference_ms:
        pairs = [(measured[row["name"]], row) for row in second.measured(runtime) if row["name"] in measured]
        old, new = np.array([[row["measured"][runtime]["relative"] for row in pair] for pair in pairs]).T
        changes[runtime] = round(100 * float(np.median(np.abs(new / old - 1))), 2)
    return changes


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("runs") / "adapted_latency", help="folder of measurements")
    parser.add_argument("--networks", type=int, default=168)
    parser.add_argument("--again", type=int, default=14, help="number of networks that are measured twice")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    try:
        families = [family for family in network_families().values() if isinstance(family, Family)]
        timing, config = TimingConfig(warmup=1, repeats=3, clock="cpu"), NetworkSetConfig(seed=SEED)
        first = collect_networks(options.data, families, options.networks, timing, config)
        again = options.data.with_name(f"{options.data.name}_again")
        changes = changes_percent(first, collect_networks(again, families, options.again, timing, config))
        model = shipped_model()
        rows = rows_of(model, load_networks(options.data, model.info["runtime"]), options.draws)
    except NasExtError as error:
        raise SystemExit(f"adapted_latency: error: {error}") from None
    machine = measured_on(options.data) or describe_machine("cpu", 1)
    result = {"machine": machine, "aims": AIMS, "again_percent": changes, "rows": rows}
    write_result(options.out, result, command(__file__, argv))
    for row in rows:
        print(*row.values())


if __name__ == "__main__":
    main()
