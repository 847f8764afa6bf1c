"""The picture ``weights``: what each position reads of the others, by kind of attention, for the same input."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from nas_core.layers.attention import KINDS, LocalAttention
from tools.pictures.style import figure, kind_colour, matrix

TITLE = "Attention weights of 16 positions by kind of attention"
POSITIONS, DIM = 16, 16


def draw() -> Figure:
    """Three matrices of weights beside each other; linear attention twice, with its own length scale and without."""
    generator = torch.Generator().manual_seed(4)
    q, k = torch.randn(2, 1, 1, POSITIONS, DIM, generator=generator) * 1.2 + 0.6
    linear = KINDS.get("linear")
    kinds = {
        "softmax": KINDS.get("softmax"),
        "local, window 6": LocalAttention(6),
        f"linear, M = {POSITIONS}": linear.scaled(None),
        "linear, M = 1024": linear.scaled(1024),
    }
    made, grid = figure(5.3, 2, 2)
    for axes, (title, kind) in zip(grid.flat, kinds.items(), strict=True):
        weights = kind.weights(q, k)[0, 0].numpy()
        matrix(axes, weights, kind_colour(kind.name), title, largest=0.35 if "linear" not in title else 0.15)
        axes.title.set_color(kind_colour(kind.name))
    grid[0, 0].set_ylabel("reads ↓")
    grid[1, 0].set_ylabel("reads ↓")
    for axes in grid[1]:
        axes.set_xlabel("is read →")
    return made
