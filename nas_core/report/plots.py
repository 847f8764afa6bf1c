"""The pictures of a search, as PNG bytes; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Mark",
    "agreement",
    "bars",
    "curves",
    "figure_of",
    "fronts",
    "limit_lines",
    "name_places",
    "pareto",
    "pareto_front",
    "png",
    "progress",
    "scores",
    "whole_numbers",
]

COLOURS = ("#1f6fb4", "#d1662b", "#3a8f5a", "#8a5fb0", "#b3892c", "#c04b6b", "#4a9aa8", "#6d6d6d")
_DOTS, _GREY, _INK = "#44505c", "#b9c0c7", "#2b3036"
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
_WIDE, _HALF = (7.6, 4.4), (5.2, 4.4)
_NUMBER, _LETTER, _LINE = 0.07, 0.011, 0.06
"""Parts of a picture's width that the number of a limit and a letter take at most, and of its height a line of text."""
_PLACES = (("bottom", "left"), ("top", "right"), ("bottom", "right"), ("top", "left"))
"""Places of a name next to its point. The first one is preferred: a front of two minimised values leaves room there."""
_BOX = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
_BAR, _AROUND = 0.17, 1.0
"""Inches of a bar, and of all that is above and below the bars."""


@dataclass(frozen=True)
class Mark:
    """A point of a picture; without a name it is a circle alone."""

    name: str
    x: float
    y: float


def pareto(
    evaluated: Sequence[tuple[float, float]],
    marks: Sequence[Mark] = (),
    limits: Sequence[float] = (),
    x_label: str = "predicted latency (ms)",
    y_label: str = "validation loss",
    maximised: bool = False,
) -> bytes:
    """Every evaluated architecture, the front of those no other one beats, the limits, and named architectures.

    The cost is better towards zero, the other axis too unless it is ``maximised``.
    """
    with _picture(_WIDE) as (figure, axes):
        if evaluated:
            _cloud(axes, evaluated, _DOTS, f"evaluated ({len(evaluated)})")
            front = pareto_front(evaluated, maximised)
            _steps(axes, front, COLOURS[0], f"Pareto front ({len(front)})")
        lines = limit_lines(limits, [*(x for x, _ in evaluated), *limits])
        for index, (limit, line) in enumerate(lines):
            axes.axvline(limit, color=COLOURS[1], linestyle=(0, (4, 3)), linewidth=1, label=None if index else "limit")
            axes.annotate(
                f"{limit:g}", (limit, 1), (3, -2 - 10 * line), xycoords=("data", "axes fraction"),
                textcoords="offset points", color=COLOURS[1], fontsize=8, va="top", bbox=_BOX,
            )  # fmt: skip
        _label(axes, marks, evaluated, legend="finalists")
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.margins(x=0.13, y=0.12)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper center", ncols=4, fontsize=9)
        return png(figure)


def fronts(
    series: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str, maximised: bool = False
) -> bytes:
    """What several searches evaluated and the front of each, in the same axes; as :func:`pareto`."""
    with _picture(_WIDE) as (figure, axes):
        for (name, points), colour in zip(series.items(), _cycle(), strict=False):
            if points:
                _cloud(axes, points, colour, None)
                _steps(axes, pareto_front(points, maximised), colour, f"{name} ({len(points)})")
        axes.set(xlabel=x_label, ylabel=y_label)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper center", ncols=3, fontsize=9)
        return png(figure)


def _cloud(axes: Axes, points: Sequence[tuple[float, float]], colour: str, label: str | None) -> None:
    x, y = zip(*points, strict=True)
    axes.scatter(x, y, s=16, color=colour, linewidths=0, alpha=0.75 if label else 0.4, label=label)


def _steps(axes: Axes, front: Sequence[tuple[float, float]], colour: str, label: str) -> None:
    x, y = zip(*front, strict=True)
    axes.step(x, y, where="post", color=colour, linewidth=1.6, label=label)
    axes.scatter(x, y, s=20, color=colour, zorder=3)


def agreement(groups: Mapping[str, tuple[Sequence[float], Sequence[float]]], unit: str = "ms") -> bytes:
    """Predicted against measured, with the diagonal; the legend gives each group's mean absolute error in percent.

    Args:
        groups: name -> (predicted, measured), of equal lengths and above 0.
    """
    with _picture(_HALF) as (figure, axes):
        shown = {name: np.array(pair, dtype=float) for name, pair in groups.items() if len(pair[0])}
        for (name, (predicted, measured)), colour in zip(shown.items(), COLOURS, strict=False):
            error = float(np.mean(np.abs(predicted / measured - 1)) * 100)
            label = f"{name} ({len(predicted)}): MAPE {error:.1f} %"
            axes.scatter(measured, predicted, s=26, color=colour, alpha=0.8, linewidths=0, label=label, zorder=3)
        if shown:
            low = min(float(pair.min()) for pair in shown.values()) * 0.95
            high = max(float(pair.max()) for pair in shown.values()) * 1.05
            axes.plot([low, high], [low, high], color="#8b939c", linewidth=1, zorder=2)
            axes.set(xlim=(low, high), ylim=(low, high))
            axes.legend(loc="upper left", fontsize=9)
        axes.set(xlabel=f"measured ({unit})", ylabel=f"predicted ({unit})")
        axes.set_aspect("equal")
        return png(figure)


def progress(
    series: Mapping[str, Sequence[float]], y_label: str = "best validation loss so far", maximised: bool = False
) -> bytes:
    """The best value so far over the evaluations, one line per search; failed evaluations (NaN) change nothing."""
    better = np.fmax if maximised else np.fmin
    with _picture(_HALF) as (figure, axes):
        for (name, values), colour in zip(series.items(), _cycle(), strict=False):
            if len(values):
                best = better.accumulate(np.array(values, dtype=float))
                axes.step(np.arange(1, len(best) + 1), best, where="post", color=colour, linewidth=1.6, label=name)
                axes.scatter(len(best), best[-1], s=16, color=colour, zorder=3)  # one evaluation makes no line
        axes.set(xlabel="evaluations of this search", ylabel=y_label)
        whole_numbers(axes.xaxis)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right", fontsize=9)
        return png(figure)


def bars(series: Mapping[str, Mapping[str, float]], x_label: str) -> bytes:
    """Horizontal bars from 0 with their numbers, one row for each name, the longest of the first series on top.

    Args:
        series: legend -> name -> value; the names of the first series are drawn.
    """
    first: Mapping[str, float] = next(iter(series.values()), {})
    names = sorted(first, key=lambda name: (-first[name], name))
    thick = 0.8 / max(1, len(series))
    with _picture((_WIDE[0], _AROUND + _BAR * (0.5 + len(series)) * max(1, len(names)))) as (figure, axes):
        for index, ((legend, values), colour) in enumerate(zip(series.items(), _cycle(), strict=False)):
            places = np.arange(len(names)) + (index - (len(series) - 1) / 2) * thick
            lengths = [values.get(name, 0.0) for name in names]
            drawn = axes.barh(places, lengths, height=0.9 * thick, color=colour, label=legend)
            axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
        axes.set_yticks(np.arange(len(names)), names)
        axes.set(xlabel=x_label, ylim=(len(names) - 0.4, -0.6))
        axes.margins(x=0.09)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if len(series) > 1:
            figure.legend(loc="outside upper center", ncols=len(series), fontsize=9)
        return png(figure)


def curves(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_label: str, y_label: str, log: bool = False
) -> bytes:
    """Lines ``name -> (x, y)``; ``log`` for values above 0 that span orders of magnitude."""
    with _picture(_HALF) as (figure, axes):
        for (name, (x, y)), colour in zip(series.items(), _cycle(), strict=False):
            if len(x):
                axes.plot(x, y, color=colour, linewidth=1.6, marker="o", markersize=3.5, label=name)
        axes.set(xlabel=x_label, ylabel=y_label, yscale="log" if log else "linear")
        if log:  # without formulas, which names of a user may look like
            from matplotlib.ticker import LogFormatter

            axes.yaxis.set_major_formatter(LogFormatter())
            axes.yaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right", fontsize=9)
        return png(figure)


def scores(marks: Sequence[Mark], x_label: str = "measured latency (ms)", y_label: str = "score") -> bytes:
    """Named points, better towards the upper left, joined in the order of x."""
    with _picture(_HALF) as (figure, axes):
        ordered = sorted(marks, key=lambda mark: mark.x)
        axes.plot([m.x for m in ordered], [m.y for m in ordered], color=_GREY, linewidth=1.2, zorder=2)
        _label(axes, marks, below=True)
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.margins(x=0.16, y=0.14)
        return png(figure)


def limit_lines(limits: Sequence[float], costs: Sequence[float]) -> list[tuple[float, int]]:
    """Return the limits, ascending, each with the line below the upper edge in which its number covers no other one.

    Args:
        costs: what the axis shows.
    """
    width = _NUMBER * (max(costs) - min(costs)) if costs else 0.0
    ends: list[float] = []
    lines = []
    for limit in sorted(limits):
        line = next((line for line, end in enumerate(ends) if end <= limit), len(ends))
        ends[line : line + 1] = [limit + width]
        lines.append((limit, line))
    return lines


def name_places(
    marks: Sequence[tuple[str, float, float]], points: Sequence[tuple[float, float]]
) -> list[tuple[str, str] | None]:
    """Return where the name of each mark stands, such as ``("bottom", "left")``.

    A name stays in the picture and covers no other name. Where there is no such place, or no name, it is None.

    Args:
        marks: ``(name, x, y)`` of each.
        points: what the picture shows.
    """
    corner = np.min(points, axis=0) if len(points) else np.zeros(2)
    size = np.ptp(points, axis=0) if len(points) else np.ones(2)
    size[size == 0] = 1.0
    taken: list[tuple[float, float, float, float]] = []
    places: list[tuple[str, str] | None] = []
    for name, *at in marks:
        x, y = (np.array(at) - corner) / size
        places.append(None)
        for place in _PLACES if name else ():
            left = x - _LETTER * len(name) if place[1] == "left" else x
            low = y - _LINE if place[0] == "bottom" else y
            box = left, left + _LETTER * len(name), low, low + _LINE
            free = all(box[1] <= a or b <= box[0] or box[3] <= c or d <= box[2] for a, b, c, d in taken)
            if free and box[0] >= -_LINE and box[1] <= 1 + _LINE and box[3] <= 1:
                taken.append(box)
                places[-1] = place
                break
    return places


def _label(
    axes: Axes,
    marks: Sequence[Mark],
    points: Sequence[tuple[float, float]] = (),
    below: bool = False,
    legend: str | None = None,
) -> None:
    """Points with their names, straight ``below`` or where they cover no other name."""
    if not marks:
        return
    x, y = [m.x for m in marks], [m.y for m in marks]
    axes.scatter(x, y, s=60, facecolor="white", edgecolor=COLOURS[1], linewidth=1.8, zorder=5, label=legend)
    places = name_places([(mark.name, mark.x, mark.y) for mark in marks], points)
    for mark, place in zip(marks, places, strict=True):
        if not (mark.name if below else place):
            continue
        up, right = (False, False) if below or place is None else (place[0] == "top", place[1] == "right")
        axes.annotate(
            mark.name, (mark.x, mark.y), (0, -9) if below else (6 if right else -6, 6 if up else -6),
            ha="center" if below else "left" if right else "right", va="bottom" if up else "top",
            textcoords="offset points", fontsize=9, zorder=6, bbox=_BOX,
        )  # fmt: skip


def pareto_front(points: Sequence[tuple[float, float]], maximised: bool = False) -> list[tuple[float, float]]:
    """The points (cost, value) that no other one beats in both, by their costs; lower values are better unless
    ``maximised``."""
    sign = -1.0 if maximised else 1.0
    kept: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], sign * point[1])):
        if not kept or sign * y < sign * kept[-1][1]:
            kept.append((x, y))
    return kept


def whole_numbers(axis: Any) -> None:
    """Ticks of an axis at whole numbers alone: there is no half a head."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _cycle() -> Iterator[str]:
    while True:
        yield from COLOURS


@contextmanager
def _picture(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes."""
    with figure_of(size) as figure:
        yield figure, figure.subplots()


@contextmanager
def figure_of(size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of its own, outside pyplot: nothing global is kept, no display is needed."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def png(figure: Figure) -> bytes:
    """Render a figure as PNG, with equal bytes for equal figures."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
