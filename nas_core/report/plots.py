"""Plots as PNG, drawn with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#1f6fb4", "#d1662b", "#3a8f5a", "#8a5fb0", "#b3892c", "#c04b6b", "#4a9aa8", "#6d6d6d")
_INK = "#2b3036"
_STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8b939c",
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "grid.color": "#e6e9ec",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "figure.dpi": 160,
}


@dataclass(frozen=True)
class Mark:
    """Labelled point of a figure."""

    name: str
    x: float
    y: float
    number: int | None = None
    """Index of its row in the page's table."""


def pareto_front(points: Sequence[tuple[float, float]], maximised: bool = False) -> list[tuple[float, float]]:
    """Return the Pareto front of points (cost, value), sorted by cost; values are minimised unless ``maximised``."""
    sign = -1.0 if maximised else 1.0
    front: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], sign * point[1])):
        if not front or sign * y < sign * front[-1][1]:
            front.append((x, y))
    return front


@contextmanager
def figure_of(size: tuple[float, float]) -> Iterator[Figure]:
    """Yield a matplotlib figure (``size`` in inches) that needs no display."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def png(figure: Figure) -> bytes:
    """Return a figure as PNG bytes; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


_SIDE, _SQUARE = 0.42, 1.5
_SMALL = 0.1
"""Heat map cells have three decimals if all values are below this number."""
_WRITTEN = 12
"""Largest number of names for which heat maps show numbers."""


def squares(names: Sequence[str], panels: Mapping[str, Sequence[Sequence[float]]], label: str) -> bytes:
    """Draw heat maps ``title -> matrix`` with a common colour scale from 0."""
    grids = {title: np.array(values, dtype=float) for title, values in panels.items()}
    highest = max(float(grid.max()) for grid in grids.values()) or 1.0
    decimals = 2 if highest >= _SMALL else 3
    side = _SIDE * len(names) + _SQUARE
    with figure_of((side * len(grids) + 0.8, side)) as figure:
        all_axes = figure.subplots(1, len(grids), squeeze=False, sharey=True)[0]
        for axes, (title, grid) in zip(all_axes, grids.items(), strict=True):
            image = axes.imshow(grid, vmin=0.0, vmax=highest, cmap="YlGnBu")
            axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
            axes.set_yticks(range(len(names)), names, fontsize=8)
            axes.set_title(title, fontsize=10)
            axes.grid(visible=False)
            for (row, column), value in np.ndenumerate(grid) if len(names) <= _WRITTEN else ():
                ink = "white" if value > 0.6 * highest else "black"
                axes.text(column, row, f"{value:.{decimals}f}", ha="center", va="center", fontsize=7, color=ink)
        figure.colorbar(image, ax=list(all_axes), label=label, shrink=0.8)
        return png(figure)


def pairs(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_label: str, y_label: str) -> bytes:
    """Draw points ``legend -> (x, y)``, with the line x = y."""
    with figure_of((5.6, 4.8)) as figure:
        axes = figure.subplots()
        all_values = np.concatenate([np.ravel(values) for values in series.values()]).astype(float)
        low, high = float(all_values.min()), float(all_values.max())
        margin = 0.06 * (high - low) or 0.5
        ends = [low - margin, high + margin]
        axes.plot(ends, ends, color="#8b939c", linewidth=1, zorder=2)
        for index, (name, (x, y)) in enumerate(series.items()):
            colour = COLOURS[index % len(COLOURS)]
            axes.scatter(x, y, s=26, color=colour, alpha=0.85, linewidths=0, label=name, zorder=3)
        axes.set(xlabel=x_label, ylabel=y_label)
        figure.legend(loc="outside upper center", ncols=3, fontsize=9)
        return png(figure)
