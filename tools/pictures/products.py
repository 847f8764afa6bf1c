"""The picture ``products``: the same three matrices, multiplied in two orders."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tools.pictures.style import INK, canvas, kind_colour

TITLE = "Attention as products of matrices, in two orders"
LONG, NARROW = 22.0, 7.0
"""A length of many positions and a head's few channels, in units of the canvas."""


def draw() -> Figure:
    """Softmax above, linear below, sizes to scale."""
    made, axes = canvas(101)
    softmax, linear = kind_colour("softmax"), kind_colour("linear")
    axes.text(1, 96, "softmax: queries times keys first", weight="bold", color=softmax)
    _matrix(axes, 2, 66, NARROW, LONG, "Q", softmax)
    axes.text(11.5, 77, "·", fontsize=18, ha="center", va="center")
    _matrix(axes, 14, 73.5, LONG, NARROW, "Kᵀ", softmax)
    axes.text(39, 77, "=", fontsize=16, ha="center", va="center")
    _matrix(axes, 42, 66, LONG, LONG, "N × N\nweights", softmax, filled=True)
    axes.text(67, 77, "·", fontsize=18, ha="center", va="center")
    _matrix(axes, 70, 66, NARROW, LONG, "V", softmax)
    axes.text(80, 77, "=", fontsize=16, ha="center", va="center")
    _matrix(axes, 83, 66, NARROW, LONG, "out", softmax)
    axes.text(50, 57.5, "twice as long: four times the work", ha="center", color=INK)
    axes.text(1, 46, "linear: keys times values first", weight="bold", color=linear)
    _matrix(axes, 2, 23.5, LONG, NARROW, "Kᵀ", linear)
    axes.text(27, 27, "·", fontsize=18, ha="center", va="center")
    _matrix(axes, 30, 16, NARROW, LONG, "V", linear)
    axes.text(40, 27, "=", fontsize=16, ha="center", va="center")
    _matrix(axes, 43, 23.5, NARROW, NARROW, "", linear, filled=True)
    axes.text(46.5, 33, "d × d\nsums", ha="center", va="bottom", fontsize=11)
    _matrix(axes, 60, 16, NARROW, LONG, "Q", linear)
    axes.text(70.2, 27, "·", fontsize=18, ha="center", va="center")
    _matrix(axes, 73, 23.5, NARROW, NARROW, "", linear, filled=True)
    axes.text(83, 27, "=", fontsize=16, ha="center", va="center")
    _matrix(axes, 86, 16, NARROW, LONG, "out", linear)
    axes.text(50, 7, "twice as long: twice the work", ha="center", color=INK)
    return made


def _matrix(axes: Axes, x: float, y: float, w: float, h: float, text: str, colour: str, filled: bool = False) -> None:
    axes.add_patch(
        Rectangle((x, y), w, h, facecolor=colour + ("66" if filled else "18"), edgecolor=colour, linewidth=1.5)
    )
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=11)
