"""Contestants that take turns in one process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

OWN = ("graphs_per_s", "times_plain", "ms")
"""Figures of several contestants."""


def rounds(runs: Mapping[str, Callable[[], object]], repeats: int, name: str) -> dict[str, list[float]]:
    """Seconds of each, round by round."""
    taken: dict[str, list[float]] = {key: [] for key in runs}
    order, stream = list(runs), random.Random(0)
    for turn in tqdm(range(repeats + 1), desc=name, disable=None):
        stream.shuffle(order)
        for key in order:
            start = time.perf_counter()
            runs[key]()
            if turn:  # the first round warms up
                taken[key].append(time.perf_counter() - start)
    return taken


def in_turns(runs: Mapping[str, Callable[[], object]], graphs: int, repeats: int, name: str) -> dict[str, Any]:
    """Graphs per second of each and ratios to ``plain``, as median with the middle half of all rounds."""
    taken = rounds(runs, repeats, name)
    plain = np.array(taken["plain"])
    return {
        "graphs": graphs,
        "graphs_per_s": {key: middle(graphs / np.array(seconds), 1) for key, seconds in taken.items()},
        "times_plain": {key: middle(plain / np.array(taken[key]), 2) for key in taken if key != "plain"},
        "repeats": repeats,
    }


def middle(values: np.ndarray[Any, Any], digits: int) -> dict[str, float]:
    """Median and the middle half."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return {"median": round(float(median), digits), "q25": round(float(low), digits), "q75": round(float(high), digits)}


def taking_turns(
    runs: Mapping[str, Callable[[], object]], repeats: int, name: str, reference: str = "ours"
) -> dict[str, Any]:
    """Milliseconds of each, and how many times as long as ``reference`` the others take in the same round."""
    taken = rounds(runs, repeats, name)
    own = np.array(taken[reference])
    return {
        "ms": {key: middle(1000 * np.array(seconds), 3) for key, seconds in taken.items()},
        f"{reference}_times": {key: middle(np.array(taken[key]) / own, 2) for key in taken if key != reference},
        "repeats": repeats,
    }


def flat(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each contestant of each part."""
    return [
        {
            "part": name,
            "contestant": contestant,
            "graphs_per_s": rate["median"],
            "times_plain": part["times_plain"].get(contestant, {}).get("median"),
        }
        for name, part in result.items()
        if isinstance(part, dict) and "graphs_per_s" in part
        for contestant, rate in part["graphs_per_s"].items()
    ]


def judged(result: Mapping[str, Any], part: str, figure: str, relation: str, aim: float) -> dict[str, Any]:
    """An aim, what was reached of it, and whether that is enough."""
    value = result[part][figure]
    value = value["ours"] if figure in OWN else value
    value = value["median"] if isinstance(value, dict) else value
    reached = {"<": value < aim, "<=": value <= aim, ">=": value >= aim}[relation]
    return {"aim": f"{part}: {figure} {relation} {aim}", "value": value, "reached": bool(reached)}
