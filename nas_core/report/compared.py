"""Pictures that compare things of one list with each other, or two values of each, as PNG bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nas_core.report.plots import COLOURS, figure_of, png

__all__ = ["lines", "pairs", "squares"]

_SIDE, _AROUND = 0.42, 1.5
"""Inches of a cell, and of what is beside the cells of a square."""
_SMALL = 0.1
"""Numbers that are all below this are written with three places."""
_ABREAST = 4
"""Panels of curves in a row, at most."""
_WRITTEN = 12
"""Squares of more names have no numbers in their cells."""


def squares(names: Sequence[str], panels: Mapping[str, Sequence[Sequence[float]]], label: str) -> bytes:
    """A square of colours for each panel, on one scale from 0, with the numbers in the cells where there is room.

    Args:
        panels: title -> a row for each name, with a value for each name.
    """
    grids = {title: np.array(values, dtype=float) for title, values in panels.items()}
    highest = max(float(grid.max()) for grid in grids.values()) or 1.0
    places = 2 if highest >= _SMALL else 3
    side = _SIDE * len(names) + _AROUND
    with figure_of((side * len(grids) + 0.8, side)) as figure:
        every = figure.subplots(1, len(grids), squeeze=False, sharey=True)[0]
        for axes, (title, grid) in zip(every, grids.items(), strict=True):
            drawn = axes.imshow(grid, vmin=0.0, vmax=highest, cmap="YlGnBu")
            axes.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8)
            axes.set_yticks(range(len(names)), names, fontsize=8)
            axes.set_title(title, fontsize=10)
            axes.grid(visible=False)
            for (row, column), value in np.ndenumerate(grid) if len(names) <= _WRITTEN else ():
                ink = "white" if value > 0.6 * highest else "black"
                axes.text(column, row, f"{value:.{places}f}", ha="center", va="center", fontsize=7, color=ink)
        figure.colorbar(drawn, ax=list(every), label=label, shrink=0.8)
        return png(figure)


def pairs(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_label: str, y_label: str, equal: bool = True
) -> bytes:
    """Points of two values, one colour for each series.

    Args:
        series: legend -> (x, y), of equal lengths.
        equal: whether the two would be equal at best; the line on which they are is drawn then.
    """
    with figure_of((5.6, 4.8)) as figure:
        axes = figure.subplots()
        if equal:
            every = np.concatenate([np.ravel(values) for values in series.values()]).astype(float)
            low, high = float(every.min()), float(every.max())
            margin = 0.06 * (high - low) or 0.5
            ends = [low - margin, high + margin]
            axes.plot(ends, ends, color="#8b939c", linewidth=1, zorder=2)
        for index, (name, (x, y)) in enumerate(series.items()):
            colour = COLOURS[index % len(COLOURS)]
            axes.scatter(x, y, s=26, color=colour, alpha=0.85, linewidths=0, label=name, zorder=3)
        axes.set(xlabel=x_label, ylabel=y_label)
        figure.legend(loc="outside upper center", ncols=3, fontsize=9)
        return png(figure)


def lines(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    levels: Mapping[str, float],
    x_label: str,
    y_label: str,
    level_label: str = "",
) -> bytes:
    """Curves on the same axes, a panel for each thing, one colour for each series, with a level as a dashed line.

    Args:
        panels: title -> legend -> (x, y), of equal lengths.
        levels: title -> the value of its level; a title without one has none.
    """
    across = min(_ABREAST, len(panels))
    down = -(-len(panels) // across)
    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    shown = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    with figure_of((1.4 + 2.9 * across, 1.2 + 2.3 * down)) as figure:
        grid = figure.subplots(down, across, squeeze=False, sharex=True)
        legend: dict[str, Any] = {}
        for axes, (title, curves) in zip(grid.flat, panels.items(), strict=False):
            for name, (x, y) in curves.items():
                (legend[name],) = axes.plot(x, y, color=shown[name], linewidth=1.5, marker="o", markersize=3)
            if title in levels:
                drawn = axes.axhline(levels[title], color="#8b939c", linewidth=1.2, linestyle=(0, (4, 3)))
                if level_label:
                    legend[level_label] = drawn
            axes.set_title(title, fontsize=10)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(x_label, fontsize=10)
        figure.supylabel(y_label, fontsize=10)
        figure.legend(list(legend.values()), list(legend), loc="outside upper center", ncols=3, fontsize=9)
        return png(figure)
