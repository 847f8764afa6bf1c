"""The picture ``cosine``: how cosFormer's factor falls with distance, for several length scales."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from nas_core.layers.attention import LinearAttention
from nas_core.report.plots import COLOURS
from tools.pictures.style import figure

TITLE = "The cosine factor over the distance, for four length scales"
POSITIONS, SCALES = 30, (30, 60, 128, 512)


def draw() -> Figure:
    """Weights of equal queries and keys, relative to those of a position for itself."""
    made, axes = figure(3.7)
    same = torch.ones(1, 1, POSITIONS, 4)
    for scale, colour in zip(SCALES, COLOURS, strict=False):
        weights = LinearAttention(scale).weights(same, same)[0, 0, 0]
        axes.plot(range(POSITIONS), weights / weights[0], color=colour, label=f"M = {scale}")
    axes.set(xlabel="distance in a sentence of 30 words", ylabel="factor", ylim=(0, 1.05), xlim=(0, POSITIONS - 1))
    axes.grid(axis="y")
    axes.legend(loc="lower left")
    return made
