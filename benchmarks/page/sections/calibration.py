"""Real BLEU, and what estimates it; shown once its result is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results
from benchmarks.page.section import Section
from benchmarks.page.words import fixed, table

__all__ = ["SECTIONS"]

NAME = "real_bleu"
CALLED = {
    "hat": "HAT's supernet", "sandwich": "sandwich", "mos_layer": "layer-wise MoS", "mos_neuron": "neuron-wise MoS",
    "parameters": "number of parameters", "ridge_sizes": "ridge on sizes", "ridge_both": "ridge on sizes and BLEUs",
    "statistics": "predictor `statistics`", "nn_former": "NN-Former", "calibration": "calibration, four supernets",
    "calibration_hat": "of HAT's alone", "calibration_sandwich": "of sandwich alone",
    "calibration_mos_layer": "of layer-wise MoS alone", "calibration_mos_neuron": "of neuron-wise MoS alone",
    "part_inherited": "its part: inherited", "part_sizes": "its part: sizes", "part_both": "its part: both",
}  # fmt: skip
OURS = "calibration"
SUPERNETS = ("hat", "sandwich", "mos_layer", "mos_neuron")
PARTS = ("part_inherited", "part_sizes", "part_both")


def _found(results: Results, protocol: str, task: str = "mean") -> dict[tuple[str, int], Mapping[str, Any]]:
    rows = results.rows(NAME, task=task)
    return {(row["method"], row["trained"]): row for row in rows if row["protocol"] == protocol}


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    error = f" ({fixed(row['error'], 2)})" if "error" in row else ""
    return f"{fixed(row['tau'], 3)}{error}"


def _rows(results: Results, columns: list[tuple[str, int]], task: str = "mean") -> list[list[str]]:
    found = {protocol: _found(results, protocol, task) for protocol in {protocol for protocol, _ in columns}}
    lines = [
        [called, *(_cell(found[protocol].get((method, trained))) for protocol, trained in columns)]
        for method, called in CALLED.items()
    ]
    return [line for line in lines if any(line[1:])]


def _real_bleu(results: Results) -> Mapping[str, str]:
    published, drawn = _found(results, "published"), _found(results, "drawn")
    ours, sizes = published[OURS, 10], published["ridge_sizes", 10]
    parts = {name: drawn[name, 10] for name in PARTS}
    within = [drawn[OURS, trained] for trained in (5, 10, 15)]
    aims = results[NAME]["aims"]
    columns = [("published", 0), ("published", 5), ("published", 10), ("drawn", 15)]
    more = [("drawn", 5), ("drawn", 10)]
    told = [(found, trained) for found, most in ((published, 10), (drawn, 15)) for trained in (5, 10, 15)[: most // 5]]
    behind_tau = [max(f[name, n]["tau"] for name in PARTS) - f[OURS, n]["tau"] for f, n in told]
    behind_error = [f[OURS, n]["error"] - min(f[name, n]["error"] for name in PARTS) for f, n in told]
    five = published[OURS, 5]
    beats = five["tau"] > sizes["tau"] and five["error"] < sizes["error"]
    each = {task: _found(results, "published", task) for task in results[NAME]["tasks"]}
    best = max(SUPERNETS, key=lambda name: published[name, 0]["tau"])
    return {
        "table": table(["", "none trained", "5", "10", "15, drawn"], _rows(results, columns)),
        "drawn": table(["", "5, drawn", "10, drawn"], _rows(results, more)),
        "tasks": table(
            ["from 10 trained networks", *each],
            [[called, *(_cell(found.get((name, 10))) for found in each.values())] for name, called in CALLED.items()],
        ),
        "tau": fixed(ours["tau"], 3), "error": fixed(ours["error"], 3),
        "aim_tau": fixed(aims["tau"], 2), "aim_error": fixed(aims["error"], 2),
        "sizes_tau": fixed(sizes["tau"], 3), "sizes_error": fixed(sizes["error"], 3),
        "best": CALLED[best], "best_tau": fixed(published[best, 0]["tau"], 3),
        "best_error": fixed(published[best, 0]["error"], 2),
        "five_tau": fixed(published[OURS, 5]["tau"], 3), "five_error": fixed(published[OURS, 5]["error"], 3),
        "drawn_tau": fixed(drawn[OURS, 10]["tau"], 3), "drawn_error": fixed(drawn[OURS, 10]["error"], 3),
        "part_tau": fixed(max(row["tau"] for row in parts.values()), 3),
        "part_error": fixed(min(row["error"] for row in parts.values()), 3),
        "verdict": "reached" if ours["tau"] >= aims["tau"] and ours["error"] <= aims["error"] else "missed",
        "five_verdict": "reached" if beats else "missed",
        "behind_tau": fixed(max(0.0, *behind_tau), 3), "behind_error": fixed(max(0.0, *behind_error), 3),
        "noise": fixed(results[NAME]["noise"]["wmt14ende"], 2),
        "fifteen_tau": fixed(drawn[OURS, 15]["tau"], 3),
        "within_1": ", ".join(f"{fixed(100 * row['within_1'], 0)} %" for row in within),
        "within_2": ", ".join(f"{fixed(100 * row['within_2'], 0)} %" for row in within),
        "draws": str(drawn[OURS, 10]["draws"]),
    }  # fmt: skip


SECTIONS = [Section("Real BLEU", (NAME,), _real_bleu, optional=True)]
