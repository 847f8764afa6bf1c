"""Alternating time measurements in one process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

MEASURED_PER_RUN = ("graphs_per_s", "times_plain", "ms")
"""Metrics that :func:`compare_throughput` returns per run."""


def time_rounds(runs: Mapping[str, Callable[[], object]], repeats: int, name: str) -> dict[str, list[float]]:
    """Time functions in random order in each round; return name -> seconds by round."""
    durations: dict[str, list[float]] = {key: [] for key in runs}
    order, rng = list(runs), random.Random(0)
    for round_index in tqdm(range(repeats + 1), desc=name, disable=None):
        rng.shuffle(order)
        for key in order:
            start = time.perf_counter()
            runs[key]()
            if round_index:  # the first round warms up
                durations[key].append(time.perf_counter() - start)
    return durations


def compare_throughput(
    runs: Mapping[str, Callable[[], object]], graphs: int, repeats: int, name: str
) -> dict[str, Any]:
    """Return graphs per second, and the time of ``plain`` relative to each run: medians and quartiles over rounds."""
    durations = time_rounds(runs, repeats, name)
    plain = np.array(durations["plain"])
    return {
        "graphs": graphs,
        "graphs_per_s": {key: quartiles(graphs / np.array(seconds), 1) for key, seconds in durations.items()},
        "times_plain": {key: quartiles(plain / np.array(durations[key]), 2) for key in durations if key != "plain"},
        "repeats": repeats,
    }


def time_ms(run: Callable[[], object], device: torch.device) -> float:
    """Return the time of a call; by CUDA events on a GPU."""
    if device.type != "cuda":
        start = time.perf_counter()
        run()
        return 1000 * (time.perf_counter() - start)
    with torch.cuda.device(device):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))


def quartiles(values: np.ndarray[Any, Any], digits: int) -> dict[str, float]:
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return {"median": round(float(median), digits), "q25": round(float(low), digits), "q75": round(float(high), digits)}


def compare_times(
    runs: Mapping[str, Callable[[], object]], repeats: int, name: str, reference: str = "ours"
) -> dict[str, Any]:
    """Return milliseconds, and ratios to ``reference`` within a round: medians and quartiles."""
    times_s = time_rounds(runs, repeats, name)
    base = np.array(times_s[reference])
    return {
        "ms": {key: quartiles(1000 * np.array(seconds), 3) for key, seconds in times_s.items()},
        f"{reference}_times": {key: quartiles(np.array(times_s[key]) / base, 2) for key in times_s if key != reference},
        "repeats": repeats,
    }


def throughput_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "part": name,
            "contestant": implementation,
            "graphs_per_s": rate["median"],
            "times_plain": part["times_plain"].get(implementation, {}).get("median"),
        }
        for name, part in result.items()
        if isinstance(part, dict) and "graphs_per_s" in part
        for implementation, rate in part["graphs_per_s"].items()
    ]


def check_aim(result: Mapping[str, Any], part: str, figure: str, relation: str, aim: float) -> dict[str, Any]:
    """Compare a metric with its aim."""
    value = result[part][figure]
    value = value["ours"] if figure in MEASURED_PER_RUN else value
    value = value["median"] if isinstance(value, dict) else value
    reached = {"<": value < aim, "<=": value <= aim, ">=": value >= aim}[relation]
    return {"aim": f"{part}: {figure} {relation} {aim}", "value": value, "reached": bool(reached)}
