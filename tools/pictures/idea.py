"""The picture ``idea``: the project in one line, for the first page. A sketch: the dots are made up."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nas_core.report.plots import pareto_front
from tools.pictures.style import BLUE, GREEN, GREY, ORANGE, arrow, canvas

TITLE = "One supernet, many networks compared, one of them taken out"


def draw() -> Figure:
    """Nested squares, a cloud of dots with its front, one square."""
    made, axes = canvas(46)
    for side, colour in ((26, BLUE), (19, ORANGE), (12, GREEN)):
        axes.add_patch(Rectangle((2, 41 - side), side, side, facecolor=colour + "22", edgecolor=colour, linewidth=2))
    arrow(axes, (30, 27), (36, 27))
    rng = np.random.default_rng(1)
    cost = rng.uniform(0.12, 0.95, 60)
    loss = 0.13 / (cost + 0.1) + rng.gamma(2.0, 0.1, 60)
    points = [(38 + 32 * x, 13 + 27 * y) for x, y in zip(cost, loss, strict=True) if y < 1]
    axes.plot([38, 38, 71], [42, 13, 13], color=GREY, linewidth=1.5)
    axes.scatter(*zip(*points, strict=True), s=14, color=GREY)
    front = pareto_front(points)
    axes.plot(*zip(*front, strict=True), color=BLUE, drawstyle="steps-post", linewidth=1.5)
    axes.scatter(*zip(*front, strict=True), s=22, color=BLUE)
    axes.text(54.5, 9.5, "time →", ha="center", va="center", fontsize=11)
    axes.text(39.5, 42.5, "loss", ha="left", va="center", fontsize=11)
    chosen = front[len(front) // 2]
    axes.scatter(*chosen, s=120, facecolor="none", edgecolor=ORANGE, linewidth=2)
    arrow(axes, (74, 27), (80, 27))
    axes.add_patch(Rectangle((82, 19), 16, 16, facecolor=ORANGE + "22", edgecolor=ORANGE, linewidth=2))
    for x, text in ((15, "one supernet"), (54.5, "many compared"), (90, "one yours")):
        axes.text(x, 3, text, ha="center", va="center", fontsize=11.5, weight="bold")
    return made
