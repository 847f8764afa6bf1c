"""How the page's figures look and are saved: white ground for any theme, letters as paths, equal bytes every time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.page.results import Results
from benchmarks.page.section import Picture
from nas_core.files import atomic_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "GREY", "INK", "crossing", "interval", "legend_above", "save", "thousands"]

COLOURS = ("#1f6fb4", "#d1662b", "#3a8f5a", "#8a5fb0", "#b3892c", "#c04b6b", "#4a9aa8", "#6d6d6d")
GREY, INK = "#9aa2aa", "#2b3036"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8b939c",
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlecolor": INK,
    "axes.grid": True,
    "grid.color": "#e6e9ec",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "nas-ext",
}


def save(picture: Picture, results: Results, path: Path, stamp: str) -> None:
    """Draw a picture into an ``.svg`` or ``.png`` file that carries the stamp of its data."""
    import matplotlib
    from matplotlib.figure import Figure

    kind = path.suffix[1:]
    with matplotlib.rc_context(STYLE):
        figure = Figure(picture.inches, layout="constrained")
        picture.draw(results, figure)
        with atomic_output(path) as beside:
            about = {"Title": picture.name, "Source": f"benchmarks/results {stamp}"}
            metadata = {**about, "Date": None} if kind == "svg" else {**about, "Software": None}
            figure.savefig(beside, format=kind, dpi=160, metadata=metadata)


def legend_above(axes: Axes, columns: int) -> None:
    """The names of the curves above the axes, so that they hide nothing."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, handlelength=1.6)


def thousands(axes: Axes, ticks: Sequence[float]) -> None:
    """These numbers along the axis below, written out, and no others."""
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def interval(axes: Axes, place: float, low: float, middle: float, high: float, colour: str) -> None:
    """A median with its quartiles on a horizontal line."""
    axes.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.35, solid_capstyle="round")
    axes.plot([middle], [place], "o", color=colour, markersize=6)


def crossing(places: Iterable[float], values: Iterable[float]) -> float:
    """Where a growing curve reaches 1, on logarithmic axes between the two places around it."""
    import math

    pairs = list(zip(places, values, strict=True))
    for (x0, y0), (x1, y1) in itertools.pairwise(pairs):
        if y0 < 1 <= y1:
            return float(x0 * (x1 / x0) ** (math.log(1 / y0) / math.log(y1 / y0)))
    raise ValueError("the curve does not cross 1")
