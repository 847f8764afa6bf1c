"""How the pictures of the pages look, and how a program's figure becomes an SVG that is the same each time."""

from __future__ import annotations

import importlib
import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib

from nas_core.layers.attention import KINDS
from nas_core.report.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PURPLE",
    "arrow",
    "box",
    "canvas",
    "figure",
    "kind_colour",
    "matrix",
    "svg_of",
]

BLUE, ORANGE, GREEN, PURPLE, *_ = COLOURS
GREY, INK = "#8b939c", "#2b3036"
WIDTH = 4.6
"""Inches. A telephone shows a picture about as wide as its page, so that twelve points of this width stay readable."""
_STYLE = {
    "svg.hashsalt": "nas-ext",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": False,
    "grid.color": "#e6e9ec",
    "axes.axisbelow": True,
    "lines.linewidth": 2,
    "figure.constrained_layout.use": True,
}


def svg_of(name: str) -> str:
    """The SVG of the picture of that name: no date, the same names of parts each time, a title for who hears it."""
    from matplotlib import pyplot

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "svg", **_STYLE}):
        program = importlib.import_module(f"tools.pictures.{name}")
        made = program.draw()
        text = io.StringIO()
        unstamped = {"Date": None, "Creator": None, "Title": program.TITLE}
        made.savefig(text, format="svg", facecolor="white", bbox_inches="tight", pad_inches=0.14, metadata=unstamped)
        pyplot.close(made)
    drawn = text.getvalue().replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    drawn = re.sub(r"<!--.*?-->", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"-?\d+\.\d{3,}(?![\w.])", lambda number: f"{float(number[0]):.2f}", drawn)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of the usual width with axes."""
    from matplotlib import pyplot

    return pyplot.subplots(rows, columns, figsize=(WIDTH, height), **options)


def canvas(height: float) -> tuple[Figure, Axes]:
    """A figure of the usual width to draw boxes on: 100 units wide and ``height`` units high."""
    made, axes = figure(height * WIDTH / 100)
    made.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set(xlim=(0, 100), ylim=(0, height))
    axes.axis("off")
    return made, axes


def box(axes: Axes, x: float, y: float, w: float, h: float, text: str, colour: str = BLUE, size: float = 12) -> None:
    """A rounded box with its lower left corner at (x, y), lightly filled."""
    from matplotlib.patches import FancyBboxPatch

    shape = f"round,pad=0,rounding_size={min(w, h) / 6}"
    axes.add_patch(
        FancyBboxPatch((x, y), w, h, boxstyle=shape, facecolor=colour + "22", edgecolor=colour, linewidth=1.5)
    )
    axes.text(x + w / 2, y + h / 2, text, ha="center", va="center", fontsize=size, linespacing=1.25)


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = INK, bend: float = 0.0
) -> None:
    """An arrow between two points."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", end, start, arrowprops={**style, "connectionstyle": f"arc3,rad={bend}"})


def matrix(axes: Axes, values: Any, colour: str, title: str = "", largest: float | None = None) -> None:
    """Numbers from 0 (white) to ``largest`` (the colour) as cells, row 0 above, without axes."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shades", ["#ffffff", colour])
    rows, columns = len(values), len(values[0])
    axes.pcolormesh(values, cmap=shades, vmin=0, vmax=largest, edgecolors="#e6e9ec", linewidth=0.4)
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[], aspect="equal")
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY)
    axes.set_title(title)


def kind_colour(name: str) -> str:
    """The colour that a kind of attention has in every picture."""
    return KINDS.get(name).colour
