"""Interactive plotly figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

Figure = dict[str, Any]
COLOURS = ("#1f6fb4", "#d1662b", "#3a8f5a", "#8a5fb0", "#b3892c", "#c04b6b", "#4a9aa8", "#6d6d6d")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_GREY = "#8b939c"
_NEAR = 1.15
"""Limits above this multiple of the largest cost are not drawn."""


@dataclass(frozen=True)
class Mark:
    """Labelled point of a figure."""

    name: str
    x: float
    y: float
    number: int | None = None
    """Index of its row in the page's table."""


@dataclass(frozen=True)
class Cloud:
    """Evaluated architectures (x, y) in one colour."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    numbers: Sequence[int]
    """Index of each point's row in the page's table."""
    labels: Sequence[Mark] = field(default_factory=tuple)
    """Labelled points of finalists."""


def figure(data: Sequence[Mapping[str, Any]], x: str, y: str, height: int) -> Figure:
    """Return a plotly figure with titled axes."""
    axis = {"gridcolor": "rgba(128,136,146,0.25)", "linecolor": _GREY, "zeroline": False, "automargin": True}
    layout = {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 40, "b": 50},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "hovermode": "closest",
        "xaxis": {**axis, "title": {"text": _escaped(x)}},
        "yaxis": {**axis, "title": {"text": _escaped(y)}},
    }
    return {"data": [{**trace, "name": _escaped(trace["name"])} for trace in data], "layout": layout}


def pareto_front(points: Sequence[tuple[float, float]], maximised: bool = False) -> list[tuple[float, float]]:
    """Return the Pareto front of points (cost, value), sorted by cost; values are minimised unless ``maximised``."""
    sign = -1.0 if maximised else 1.0
    front: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], sign * point[1])):
        if not front or sign * y < sign * front[-1][1]:
            front.append((x, y))
    return front


def fronts(
    clouds: Sequence[Cloud],
    x: str,
    y: str,
    limits: Sequence[float] = (),
    maximised: bool = False,
    own_fronts: bool = False,
) -> Figure:
    """Return a scatter plot of evaluated architectures with Pareto front, limits and finalists.

    Args:
        own_fronts: draw a Pareto front for each cloud.
    """
    data: list[dict[str, Any]] = []
    for index, c in enumerate(clouds):
        marker = {"size": 8, "opacity": 0.75, "color": COLOURS[index % len(COLOURS)],
                  "symbol": SYMBOLS[index % len(SYMBOLS)]}  # fmt: skip
        data.append(
            {"type": "scatter", "mode": "markers", "name": f"{c.name} ({len(c.numbers)})", "marker": marker,
             "x": list(c.x), "y": list(c.y), "customdata": list(c.numbers)}
        )  # fmt: skip
    for index, group in enumerate([[c] for c in clouds] if own_fronts else [list(clouds)]):
        numbers = {(a, b): n for c in group for a, b, n in zip(c.x, c.y, c.numbers, strict=True)}
        front = pareto_front(list(numbers), maximised)
        name = f"Pareto front of {group[0].name}" if own_fronts and group else "Pareto front"
        line = {"shape": "hv", "width": 2, "color": COLOURS[index % len(COLOURS)] if own_fronts else _GREY}
        data.append({**_line(f"{name} ({len(front)})", [a for a, _ in front], [b for _, b in front]), "line": line})
        if labels := [label for c in group for label in c.labels]:
            suffix = f" of {group[0].name}" if own_fronts else ""
            data.append(
                {
                    **_line(
                        f"finalists{suffix} ({len(labels)})",
                        [label.x for label in labels],
                        [label.y for label in labels],
                    ),
                    "mode": "markers+text",
                    "text": [_escaped(label.name) for label in labels],
                    "textposition": "top right",
                    "customdata": [label.number for label in labels],
                    "marker": {"size": 14, "symbol": "circle-open", "color": COLOURS[1], "line": {"width": 2}},
                }
            )
    plot = figure(data, x, y, 480)
    largest = max((value for c in clouds for value in c.x), default=0.0)
    near_limits = [limit for limit in limits if limit <= _NEAR * largest]
    dashed = {"dash": "dash", "width": 1.2, "color": COLOURS[1]}
    plot["layout"]["shapes"] = [
        {"type": "line", "x0": limit, "x1": limit, "y0": 0, "y1": 1, "yref": "paper", "line": dashed}
        for limit in near_limits
    ]
    plot["layout"]["annotations"] = [
        {"x": limit, "y": 1, "yref": "paper", "text": f"{limit:g}", "showarrow": False, "xanchor": "left"}
        for limit in near_limits
    ]
    return plot


def progress(series: Mapping[str, Sequence[float]], y: str, maximised: bool = False) -> Figure:
    """Return a plot of the best value so far over the evaluations of each search."""
    better = np.fmax if maximised else np.fmin
    data = []
    for index, (name, values) in enumerate(series.items()):
        best = [_finite(value) for value in better.accumulate(np.array(values, float))]
        line = {"shape": "hv", "width": 2, "color": COLOURS[index % len(COLOURS)], "dash": DASHES[index % len(DASHES)]}
        data.append({**_line(name, list(range(1, len(best) + 1)), best), "line": line})
    return figure(data, "evaluations of this search", y, 400)


def bars(series: Mapping[str, Mapping[str, float]], x: str) -> Figure:
    """Return a bar chart ``legend -> name -> value``, sorted by the first series."""
    first: Mapping[str, float] = next(iter(series.values()), {})
    names = sorted(first, key=lambda name: (first[name], name))
    data = [
        {"type": "bar", "orientation": "h", "name": legend, "x": [float(values.get(name, 0.0)) for name in names],
         "y": [_escaped(name) for name in names], "marker": {"color": COLOURS[index % len(COLOURS)]}}
        for index, (legend, values) in enumerate(series.items())
    ]  # fmt: skip
    return figure(data, x, "", 140 + (12 + 13 * len(series)) * len(names))


def heat_map(names: Sequence[str], values: Sequence[Sequence[float]], highest: float, label: str) -> Figure:
    """Return a heat map of a matrix with rows and columns ``names`` and colours from 0 to ``highest``."""
    escaped = [_escaped(name) for name in names]
    colours = {"zmin": 0, "zmax": highest, "colorscale": "Blues", "colorbar": {"title": {"text": _escaped(label)}}}
    trace = {"type": "heatmap", "name": label, "x": escaped, "y": escaped, "z": values, "texttemplate": "%{z:.3f}"}
    plot = figure([trace | colours], "", "", 240 + 36 * len(names))
    plot["layout"]["yaxis"]["autorange"] = "reversed"
    return plot


def pairs(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str) -> Figure:
    """Return a plot of points ``legend -> (x, y)`` with the line x = y."""
    ends = [limit(value for points in series.values() for values in points for value in values) for limit in (min, max)]
    data: list[dict[str, Any]] = [_line("equal", ends, ends) | {"line": {"width": 1, "color": _GREY}}]
    for index, (name, (xs, ys)) in enumerate(series.items()):
        marker = {"color": COLOURS[index % len(COLOURS)], "symbol": SYMBOLS[index % len(SYMBOLS)]}
        data.append({**_line(name, xs, ys), "mode": "markers", "marker": marker})
    return figure(data, x, y, 440)


def _line(name: str, x: Sequence[Any], y: Sequence[Any]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines+markers" if len(x) < 2 else "lines", "name": name, "x": x, "y": y}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _escaped(text: object) -> str:
    return escape(str(text), quote=False)
