"""The picture ``whole``: how data flows from a search space to a small network."""

from __future__ import annotations

from matplotlib.figure import Figure

from tools.pictures.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, arrow, box, canvas

TITLE = "From a search space to a small network of its own"


def draw() -> Figure:
    """Boxes from above to below, and the loop of the search."""
    made, axes = canvas(119)
    box(axes, 25, 105, 50, 13, "search space\nwhat may be chosen", GREY)
    box(axes, 25, 81, 50, 13, "architecture\none choice of everything", PURPLE)
    box(axes, 1, 53, 30, 17, "supernet\nquality with\nshared weights", BLUE, 11)
    box(axes, 35, 53, 30, 17, "graph\nquality or time\npredicted", GREEN, 11)
    box(axes, 69, 53, 30, 17, "cost\nsize, FLOPs,\nmeasured time", ORANGE, 11)
    box(axes, 25, 29, 50, 13, "strategy\nis told, asks for more", GREY)
    box(axes, 1, 3, 40, 15, "archive\nbest for each cost", GREY)
    box(axes, 56, 3, 43, 15, "extraction\na small plain network", BLUE)
    arrow(axes, (50, 105), (50, 94.5))
    axes.text(52, 99.5, "draw", va="center", fontsize=11)
    for x in (16, 50, 84):
        arrow(axes, (50, 81), (x, 70.5))
        arrow(axes, (x, 53), (50 + (x - 50) / 3, 42.5))
    axes.plot([75, 102, 102], [35.5, 35.5, 87.5], color=INK, linewidth=1.5, clip_on=False)
    arrow(axes, (102, 87.5), (75.5, 87.5))
    axes.text(99, 76, "ask", ha="right", va="center", fontsize=11)
    arrow(axes, (38, 29), (21, 18.5))
    arrow(axes, (41, 10.5), (55.5, 10.5))
    return made
