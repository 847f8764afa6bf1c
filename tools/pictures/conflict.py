"""The picture ``conflict``: training two subnets that want different weights, with and without experts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tools.pictures.style import BLUE, GREEN, ORANGE, figure
from tools.pictures.toy_conflict import UPDATES, learned

TITLE = "Loss of two subnets that want different things of the weights they share"
KINDS = {
    "none": ("one shared matrix", BLUE),
    "layer": ("layer-wise experts", ORANGE),
    "neuron": ("neuron-wise experts", GREEN),
}
SEEDS = range(4)


def draw() -> Figure:
    """Loss over updates for each kind of mixture: thin the runs from four starting weights, thick their mean."""
    made, axes = figure(3.8)
    for kind, (name, colour) in KINDS.items():
        runs = [learned(kind, seed).losses for seed in SEEDS]
        for run in runs:
            axes.plot(run, color=colour, linewidth=0.8, alpha=0.45)
        axes.plot(np.mean(runs, axis=0), color=colour, linewidth=2.5, label=name)
    axes.set(xlabel="update", ylabel="loss of both subnets", ylim=(0, 1.3), xlim=(0, UPDATES))
    axes.grid(axis="y")
    axes.legend(loc="upper right")
    return made
