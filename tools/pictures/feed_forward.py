"""The picture ``feed_forward``: what a node's feed-forward layer reads beside the node itself."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from tools.pictures.cell import GRAPH, draw_cell
from tools.pictures.style import BLUE, GREEN, GREY, ORANGE, arrow, box, figure

TITLE = "The feed-forward layer of a node adds sums of its parents and of its children"
NODE = 3


def draw() -> Figure:
    """The cell with one node, its parents and its children coloured, and three parts that are added up."""
    made, (above, below) = figure(4.6, 2, 1, height_ratios=[1, 1])
    colours = np.full(len(GRAPH.ops), GREY, object)
    colours[NODE] = BLUE
    colours[GRAPH.edges[GRAPH.edges[:, 1] == NODE, 0]] = ORANGE
    colours[GRAPH.edges[GRAPH.edges[:, 0] == NODE, 1]] = GREEN
    draw_cell(above, list(colours))
    box(below, 1, 25, 30, 16, f"node {NODE}\nitself", BLUE)
    box(below, 35, 25, 30, 16, "sum over\nits parents", ORANGE)
    box(below, 69, 25, 30, 16, "sum over\nits children", GREEN)
    box(below, 20, 1, 60, 13, "added, ReLU, projected back", GREY)
    for x in (16, 50, 84):
        arrow(below, (x, 25), (50 + (x - 50) / 2, 14.5))
    below.set(xlim=(-1, 101), ylim=(0, 42), aspect="equal")
    below.axis("off")
    return made
