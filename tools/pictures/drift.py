"""The picture ``drift``: one network measured again and again, as measured and divided by the reference."""

from __future__ import annotations

import json

import numpy as np
from matplotlib.figure import Figure

from tools.pictures.drift_trace import FILE
from tools.pictures.style import BLUE, GREEN, GREY, ORANGE, figure

TITLE = "One network measured again and again: raw, divided by the reference, and with the processor's clock"


def draw() -> Figure:
    """Three traces over time, each as a percentage above or below its own median."""
    rows = {clock: np.array(found) for clock, found in json.loads(FILE.read_text(encoding="utf-8"))["rows"].items()}
    wall, cpu = rows["wall"], rows["cpu"]
    traces = (
        ("as the clock on the wall says", wall[:, 0], wall[:, 1], ORANGE),
        ("divided by the reference", wall[:, 0], wall[:, 3], BLUE),
        ("processor's clock, divided by the reference", cpu[:, 0], cpu[:, 3], GREEN),
    )
    made, all_axes = figure(5.6, 3, 1, sharex=True, sharey=True)
    for axes, (title, seconds, values, colour) in zip(all_axes, traces, strict=True):
        deviation = (values / np.median(values) - 1) * 100
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.plot(seconds, deviation, color=colour, linewidth=1.2)
        axes.set_title(title)
    all_axes[-1].set(xlabel="seconds", xlim=(0, None))
    made.supylabel("% from its own median", fontsize=12)
    return made
