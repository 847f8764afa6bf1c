"""One cell of NAS-Bench-201, its graph as the project reads it, and where its nodes stand in pictures."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Circle

from nas_core.graph import nasbench201_graph
from nas_core.graph.nasbench201 import OPERATIONS
from tools.pictures.style import INK, arrow

__all__ = ["CELL", "GRAPH", "draw_cell"]

CELL = "|nor_conv_3x3~0|+|skip_connect~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|"
GRAPH = nasbench201_graph(CELL)
SHORT = {
    "input": "in",
    "output": "out",
    "nor_conv_1x1": "1×1",
    "nor_conv_3x3": "3×3",
    "avg_pool_3x3": "pool",
    "skip_connect": "skip",
}
PLACES = ((6, 20), (28, 32), (28, 8), (50, 20), (72, 32), (72, 8), (94, 20))


def draw_cell(axes: Axes, colours: Sequence[str]) -> None:
    """The cell from left to right, each node in its colour with its number beside it."""
    for source, target in GRAPH.edges:
        (x, y), (to_x, to_y) = PLACES[source], PLACES[target]
        length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
        dx, dy = (to_x - x) / length * 6.3, (to_y - y) / length * 6.3
        arrow(axes, (x + dx, y + dy), (to_x - dx, to_y - dy), INK)
    for node, ((x, y), colour) in enumerate(zip(PLACES, colours, strict=True)):
        axes.add_patch(Circle((x, y), 5.8, facecolor=colour + "33", edgecolor=colour, linewidth=1.8))
        axes.text(x, y, SHORT[OPERATIONS[GRAPH.ops[node]]], ha="center", va="center", fontsize=11)
        axes.text(x + 5, y + 6.5, str(node), ha="center", va="center", fontsize=11, weight="bold")
    axes.set(xlim=(-1, 101), ylim=(0, 42), aspect="equal")
    axes.axis("off")
