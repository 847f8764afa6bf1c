"""The picture ``prefixes``: which numbers of one weight matrix three subnets use, as the elastic layer selects them."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nas_core.layers import ElasticLinear
from tools.pictures.style import BLUE, GREEN, ORANGE, figure, matrix

TITLE = "Three subnets read prefixes of one weight matrix"
SIZES = {"large": (12, 10), "medium": (8, 7), "small": (5, 4)}
"""Columns (inputs) and rows (outputs) of each subnet."""


def draw() -> Figure:
    """The shared matrix, shaded by how many of the three use each number, and what each takes."""
    layer = ElasticLinear(*SIZES["large"])
    with torch.no_grad():
        layer.weight.copy_(torch.arange(120.0).view(10, 12))
    uses = {name: np.isin(layer.weight.detach(), layer.select(*size).weight.detach()) for name, size in SIZES.items()}
    made, all_axes = figure(5.3, 2, 1, height_ratios=[3, 2])
    above, below = all_axes
    matrix(above, sum(used.astype(int) for used in uses.values()), BLUE, "the supernet's matrix", largest=6)
    for (name, (columns, rows)), colour in zip(SIZES.items(), (BLUE, ORANGE, GREEN), strict=True):
        above.add_patch(
            Rectangle((0.06, 0.06), columns - 0.12, rows - 0.12, fill=False, edgecolor=colour, linewidth=2.5)
        )
        above.text(columns - 0.3, rows - 0.45, name, ha="right", va="center", color=colour, weight="bold")
    above.set(xlabel="inputs →", ylabel="← outputs")
    below.axis("off")
    below.set(xlim=(-0.5, 33.5), ylim=(13, -1.5), aspect="equal", title="what each of them computes with")
    left = 0.0
    for (name, (columns, rows)), colour in zip(SIZES.items(), (BLUE, ORANGE, GREEN), strict=True):
        below.add_patch(Rectangle((left, 0), columns, rows, facecolor=colour + "33", edgecolor=colour, linewidth=2))
        below.text(left + columns / 2, rows / 2, f"{rows} × {columns}", ha="center", va="center", fontsize=11)
        below.text(left + columns / 2, rows + 1.2, name, ha="center", va="center", color=colour, weight="bold")
        left += columns + 4.0
    return made
