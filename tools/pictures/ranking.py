"""The picture ``ranking``: the same networks with weights of their own and a supernet's, from a benchmark's file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nas_core.report.plots import COLOURS
from tools.pictures.style import GREY, figure

TITLE = "Five networks, trained alone and with weights inherited from a supernet"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "attention_quality.json"


def draw() -> Figure:
    """A line for each network, from its BLEU trained alone to that with inherited weights."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    made, axes = figure(4.6)
    ends = [float(np.mean(row["inherited_bleu"])) for row in rows]
    heights = _apart(ends, 0.06 * (31 - min(ends)))
    for row, end, height, colour in zip(rows, ends, heights, COLOURS, strict=False):
        start = float(np.mean(row["standalone_bleu"]))
        axes.plot([0, 1], [start, end], color=colour, marker="o")
        axes.text(1.06, height, row["attention"], va="center", color=colour, fontsize=11)
    axes.set(xlim=(-0.15, 2.1), xticks=[0, 1], ylabel="BLEU")
    axes.set_xticklabels(["trained\nalone", "inherited\nweights"])
    for x in (0, 1):
        axes.axvline(x, color=GREY, linewidth=0.8, zorder=0)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", length=0)
    return made


def _apart(values: list[float], least: float) -> list[float]:
    """The values, moved up where the next lower one is nearer than ``least``."""
    moved, floor = dict.fromkeys(range(len(values)), 0.0), -np.inf
    for index in np.argsort(values):
        floor = max(values[index], floor + least)
        moved[int(index)] = floor
    return [moved[index] for index in range(len(values))]
