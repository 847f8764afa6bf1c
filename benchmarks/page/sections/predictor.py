"""Predictors of accuracy and of NAS-Bench-201's latency, and the speed of NN-Former."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.page.pictures import COLOURS, INK, thousands
from benchmarks.page.results import Results, middle_of
from benchmarks.page.section import Picture, Section
from benchmarks.page.words import count, fixed, joined, spread, table, times

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "tau"]

BENCHMARKS = {"nasbench101": "NAS-Bench-101", "nasbench201": "NAS-Bench-201"}
SHORT = {"nasbench101": "NB101", "nasbench201": "NB201"}
ONE = ", members 1, depth 6, epochs 100, batch_size 16, lr 0.001, equal_sizes False, targets normal"
"""How the result calls one network of ``best`` alone."""
METHODS = {
    "paper": "NN-Former alone: recipe `paper`, released masks",
    "best, networks alone": "NN-Former alone: three networks of `best`, released masks",
    "best, networks alone, paper masks": "NN-Former alone: three networks of `best`, the paper's masks",
    f"paper{ONE}": "NN-Former alone: one network of `best`, released masks",
    f"true siblings{ONE}": "NN-Former alone: one network of `best`, the paper's masks",
    "statistics": "statistics alone: recipe `statistics`",
    "best": "the mixture: recipe `best`",
    "lightgbm statistics": "LightGBM on the statistics, L1",
    "lightgbm": "LightGBM on one-hot codes, L1",
    "gcn": "GCN",
}
PARTS = {
    f"paper{ONE}": "as released",
    f"true siblings{ONE}": "siblings as the paper defines them",
    f"global{ONE}": "global attention",
    f"asma, vanilla ffn{ONE}": "without the graph part of the feed-forward",
    f"global, vanilla ffn{ONE}": "without both",
    f"nar position{ONE}": "NAR-Former's position codes",
    f"laplacian position{ONE}": "Laplacian position codes",
}
DRAWN = {"best": (COLOURS[0], "o-", "the mixture (best)"), "statistics": (COLOURS[2], "o-", "statistics"),
         "lightgbm statistics": (COLOURS[4], "^--", "LightGBM, statistics"),
         "lightgbm": (COLOURS[7], "^--", "LightGBM, one-hot"), "gcn": (COLOURS[3], "s--", "GCN")}  # fmt: skip


def tau(results: Results, benchmark: str, size: int, method: str = "best") -> Mapping[str, Any]:
    """What one method reached from so many cells."""
    return results.row("predictor_quality", benchmark=benchmark, size=size, method=method)


def columns(results: Results) -> list[tuple[str, int]]:
    """Benchmarks and numbers of cells to learn from."""
    return sorted({(row["benchmark"], row["size"]) for row in results.rows("predictor_quality")})


def network_share(size: int) -> float:
    """NN-Former's share of what the recipe ``best`` predicts from so many graphs."""
    from nas_core.predictor.recipes import get_recipe

    return 1 - float(get_recipe("best").adapted(size).statistics)


def _quality(results: Results) -> Mapping[str, str]:
    found = {(row["benchmark"], row["size"], row["method"]): row for row in results.rows("predictor_quality")}
    shown = columns(results)

    def cell(column: tuple[str, int], method: str) -> str:
        row = found.get((*column, method))
        return f"{fixed(row['tau'], 3)} ({row['draws']})" if row else ""

    papers = {column: next(row["paper"] for key, row in found.items() if key[:2] == column) for column in shown}
    rows = [["NN-Former, as published", *(fixed(papers[column], 3) for column in shown)]]
    rows += [[label, *(cell(column, method) for column in shown)] for method, label in METHODS.items()]
    rows.append(["NN-Former's share of `best`", *(fixed(network_share(size), 2) for _, size in shown)])
    least = {name: min(size for benchmark, size in shown if benchmark == name) for name in BENCHMARKS}
    middle = next(size for benchmark, size, method in found if method == f"paper{ONE}")
    fits = {
        method: [row["fit_cpu_s"] for (*_, each), row in found.items() if each == method]
        for method in ("best", "statistics")
    }
    alone = found["nasbench101", least["nasbench101"], "paper"]
    deviations = [
        row["deviation"] for row in found.values() if row["deviation"] and row["method"] in ("best", "statistics")
    ]
    judged = {row["judged"] for row in found.values() if row["judged"] != "all"}
    return {
        **{f"{name}_best": fixed(found[name, size, "best"]["tau"], 3) for name, size in least.items()},
        **{f"{name}_statistics": fixed(found[name, size, "statistics"]["tau"], 3) for name, size in least.items()},
        **{f"{name}_paper": fixed(papers[name, size], 3) for name, size in least.items()},
        **{f"{name}_size": str(size) for name, size in least.items()},
        "alone": fixed(alone["tau"], 3),
        "alone_min": fixed(alone["fit_cpu_s"] / 60, 0),
        "share": fixed(100 * network_share(least["nasbench101"]), 0),
        "statistics_s": spread(fits["statistics"]),
        "best_min": spread([value / 60 for value in fits["best"]], 1),
        "deviation": spread(deviations, 3),
        "judged": joined(count(each) for each in judged),
        "middle": str(middle),
        "parts": table(
            ["one network, one draw", "Kendall's tau"],
            [[label, fixed(found["nasbench101", middle, method]["tau"], 3)] for method, label in PARTS.items()],
        ),
        "table": table(["Kendall's tau (draws)", *(f"{SHORT[name]}: {count(size)}" for name, size in shown)], rows),
    }


def _draw_quality(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, 2)
    for axes, (name, title) in zip(panels, BENCHMARKS.items(), strict=True):
        rows = results.rows("predictor_quality", benchmark=name)
        papers = dict(sorted({row["size"]: row["paper"] for row in rows}.items()))
        axes.plot(list(papers), list(papers.values()), "*-", color=INK, markersize=9, label="NN-Former, as published")
        for method, (colour, line, label) in DRAWN.items():
            curve = sorted((row["size"], row["tau"]) for row in rows if row["method"] == method)
            axes.plot(*zip(*curve, strict=True) if curve else ([], []), line, color=colour, markersize=5, label=label)
        axes.set_xscale("log")
        thousands(axes, list(papers))
        axes.set_title(title, loc="left")
        axes.set_xlabel("cells to learn from")
    panels[0].set_ylabel("Kendall's tau on all cells")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)


QUALITY = Section(
    "Accuracy predictors",
    ("predictor_quality",),
    _quality,
    Picture(
        "accuracy-predictors",
        "Kendall's tau of predictors by the number of cells they learn from",
        _draw_quality,
        (6.8, 4.3),
    ),
)

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

    timed = {name: each for name, each in content.items() if isinstance(each, dict) and "times_plain" in each}
    packed = content["latency_training, 16 graphs"]["times_plain"]["ours"]
    missed = [aim for aim in content["aims"] if not aim["reached"]]
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
    }


def _shown(name: str) -> str:
    kind, batch = name.split(", ")
    return f"{kind.replace('_', ' model, ').replace('forward', 'prediction')}, {batch}"


def _aim(aim: Mapping[str, Any]) -> str:
    name, _, least = aim["aim"].partition(": graphs_per_s >= ")
    return f"{count(float(least))} graphs/s in {'training' if 'training' in name else 'prediction'}"


SPEED = Section("Speed of NN-Former", ("predictor_speed",), _speed)
SECTIONS = (QUALITY, LATENCIES, SPEED)
