"""Predictors of NAS-Bench-201's latency, the speed of NN-Former, and with them the section of accuracies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results, middle_of
from benchmarks.page.section import Section
from benchmarks.page.sections.accuracy import QUALITY
from benchmarks.page.words import count, fixed, joined, spread, table, times

__all__ = ["SECTIONS"]

DEVICES = {"1080ti_1": "GTX 1080 Ti", "gold_6226": "Xeon Gold 6226", "pixel2": "Pixel 2"}
LATENCY = {
    "linear": "counts of operations, linear",
    "statistics": "recipe `statistics`",
    "lightgbm": "LightGBM",
    "gcn": "GCN",
    "latency": "recipe `latency`",
}


def _latency(results: Results) -> Mapping[str, str]:
    found = {(row["device"], row["method"]): row for row in results.rows("predictor_latency")}

    def error(device: str, method: str) -> str:
        return fixed(found[device, method]["mape"]) if (device, method) in found else ""

    recipe = [device for device, method in found if method == "latency"]
    return {
        "cells": spread([row["size"] for row in found.values()]),
        "linear": joined(f"{error(device, 'linear')} % on the {label}" for device, label in DEVICES.items()),
        "statistics": joined(error(device, "statistics") for device in DEVICES),
        "latency": joined(f"{error(device, 'latency')} % on the {DEVICES[device]}" for device in recipe),
        "table": table(
            ["mean error %", *DEVICES.values()],
            [[label, *(error(device, name) for device in DEVICES)] for name, label in LATENCY.items()],
        ),
    }  # fmt: skip


LATENCIES = Section("Latency predictors", ("predictor_latency",), _latency)


def _speed(results: Results) -> Mapping[str, str]:
    content = results["predictor_speed"]

    def rate(name: str) -> str:
        return count(middle_of(content[name]["graphs_per_s"]["ours"]))

    def ratio(name: str) -> str:
        return times(middle_of(content[name]["times_plain"]["ours"]))

    raced = {name: each for name, each in content.items() if isinstance(each, dict) and "times_plain" in each}
    timed = {name: each for name, each in raced.items() if "ms" not in each}
    packed = content["latency_training, 16 graphs"]["times_plain"]["ours"]
    missed = [aim for aim in content["aims"] if not aim["reached"] and "graphs_per_s" in aim["aim"]]
    small, large = "accuracy_forward, 128 graphs", "accuracy_forward, 4096 graphs"
    training, training_large = "accuracy_training, 128 graphs", "accuracy_training, 4096 graphs"
    nodes = sorted(int(name.split(" x ")[1]) for name in content["sparse"]["us_per_node"])
    return {
        "threads": str(content["machine"]["threads"]),
        "forward": rate(small),
        "forward_times": ratio(small),
        "forward_large": rate(large),
        "forward_large_times": ratio(large),
        "training": rate(training),
        "training_times": ratio(training),
        "training_large": rate(training_large),
        "training_large_times": ratio(training_large),
        "batch": str(content[small]["graphs"]),
        "large": count(content[large]["graphs"]),
        "all_s": fixed(content["nasbench101"]["seconds"], 0),
        "all": count(content["nasbench101"]["cells"]),
        "node": fixed(middle_of(content["sparse"]["time_per_node_ratio"]), 2),
        "nodes": joined(count(each) for each in nodes),
        "packed": ratio("latency_forward, 16 graphs"),
        "packed_training": ratio("latency_training, 16 graphs"),
        "packed_quartiles": f"{fixed(packed['q25'])} to {fixed(packed['q75'])}",
        "packed_graphs": str(content["latency_forward, 16 graphs"]["graphs"]),
        "tau_moved": fixed(content["bf16"]["tau_moved"], 4),
        "missed": joined(f"{_aim(aim)} (measured {count(aim['value'])})" for aim in missed) if missed else "none",
        "table": table(
            ["model and batch", "graphs/s", "plain: graphs/s", "times plain"],
            [
                [_shown(name), rate(name), count(middle_of(each["graphs_per_s"]["plain"])), ratio(name)]
                for name, each in timed.items()
            ],
        ),
        **_queries(content, {name: each for name, each in raced.items() if "ms" in each}),
    }


def _queries(content: Mapping[str, Any], asked: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    """One graph at a time, and statistics asked about a whole benchmark."""
    whole = content["statistics, all cells"]
    rows = [
        [
            name.removeprefix("one graph, "),
            *(fixed(middle_of(each["ms"][who]), 1) for who in ("ours", "plain")),
            *(fixed(each["processor_ms"][who], 1) for who in ("ours", "plain")),
            times(middle_of(each["times_plain"]["ours"])),
        ]
        for name, each in asked.items()
    ]
    head = ["one graph at a time", "ms", "plain: ms", "processor's ms", "plain: processor's ms", "times plain"]
    late = [aim for aim in content["aims"] if not aim["reached"] and aim["aim"].startswith(("one graph", "statistics"))]
    return {
        "queries": table(head, rows),
        "asked_on": whole["machine"]["cpu"] if "machine" in whole else content["machine"]["cpu"],
        "taught": count(whole["taught"]),
        "fit_s": fixed(whole["fit_processor_s"], 0),
        "statistics_s": fixed(whole["seconds"], 0),
        "statistics_processor_s": fixed(whole["processor_s"], 0),
        "statistics_times": times(whole["plain_times_ours"]),
        "late": joined(f"{aim['aim']} (measured {fixed(aim['value'], 1)})" for aim in late) if late else "none",
    }


def _shown(name: str) -> str:
    kind, batch = name.split(", ")
    return f"{kind.replace('_', ' model, ').replace('forward', 'prediction')}, {batch}"


def _aim(aim: Mapping[str, Any]) -> str:
    name, _, least = aim["aim"].partition(": graphs_per_s >= ")
    return f"{count(float(least))} graphs/s in {'training' if 'training' in name else 'prediction'}"


SPEED = Section("Speed of NN-Former", ("predictor_speed",), _speed)
SECTIONS = (QUALITY, LATENCIES, SPEED)
