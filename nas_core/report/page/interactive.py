"""Figures of a page that answer to the mouse: plotly's, as JSON that the page draws with its own copy of plotly.js."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from nas_core.report.plots import COLOURS, limit_lines, name_places, pareto_front

__all__ = ["Cloud", "Label", "agreement", "bars", "curves", "fronts", "page_layout", "parallel", "progress"]

INK, DOTS, GRID = "#22272d", "#44505c", "#e6e9ec"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'
_NAMES = "#a8480f"
"""The colour of texts in figures, dark enough to be read."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Shapes of points and of lines, so that nothing is told by colours alone."""
_PATTERNS = ("", "/", "x", ".")
_FEW = 12
"""Up to so many whole numbers every one has its tick."""

_NEAR = 1.15
"""Limits are drawn up to so many times the dearest architecture's cost; further ones would only squeeze the rest."""

Figure = dict[str, Any]


@dataclass(frozen=True)
class Label:
    """A named point of a figure."""

    name: str
    x: float
    y: float
    number: int | None = None
    """Number of the evaluation behind it."""


@dataclass(frozen=True)
class Cloud:
    """Evaluated architectures that are drawn alike."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    numbers: Sequence[int]
    """Numbers of the evaluations, in the order of the points."""
    labels: Sequence[Label] = field(default_factory=tuple)
    """Finalists among them."""


def fronts(
    clouds: Sequence[Cloud],
    x: str,
    y: str,
    limits: Sequence[float] = (),
    maximised: bool = False,
    each: bool = False,
    named: str = "finalists",
) -> Figure:
    """Every evaluated architecture and the front of those that no other beats: one front for all clouds, or ``each``
    its own in its own colour; limits are dashed lines, ``named`` points circles."""
    import plotly.graph_objects as go

    figure = go.Figure()
    groups = [[cloud] for cloud in clouds] if each else [list(clouds)]
    points = [point for cloud in clouds for point in zip(cloud.x, cloud.y, strict=True)]
    shades = COLOURS if each or len(clouds) > 1 else (DOTS,)
    for index, cloud in enumerate(clouds):
        colour = shades[index % len(shades)]
        symbol = SYMBOLS[index % len(SYMBOLS)]
        marker = {"size": 7, "color": colour, "symbol": symbol, "opacity": 0.55 if each else 0.75}
        title = f"{_escaped(cloud.name)} ({len(cloud.x)})"
        figure.add_scatter(x=cloud.x, y=cloud.y, customdata=cloud.numbers, mode="markers", marker=marker, name=title,
                           legendgroup=str(index))  # fmt: skip
    for index, group in enumerate(groups):
        numbers = {(a, b): n for cloud in group for a, b, n in zip(cloud.x, cloud.y, cloud.numbers, strict=True)}
        front = pareto_front(list(numbers), maximised)
        colour = shades[index % len(shades)] if each else INK
        name = f"Pareto front of {_escaped(group[0].name)}" if each else "Pareto front"
        figure.add_scatter(
            x=[point[0] for point in front],
            y=[point[1] for point in front],
            customdata=[numbers[point] for point in front],
            mode="lines+markers",
            line={"shape": "hv", "width": 2, "color": colour, "dash": DASHES[index % len(DASHES)]},
            marker={"size": 8, "color": colour, "symbol": SYMBOLS[index % len(SYMBOLS)] if each else "circle"},
            name=f"{name} ({len(front)})",
            legendgroup=str(index),
        )
        labels = [label for cloud in group for label in cloud.labels]
        whose = f"{named} of {group[0].name}" if each else named
        _add_labels(figure, labels, points, whose, colour if each else COLOURS[1])
    costs = [x for x, _ in points]
    near = [limit for limit in limits if limit <= _NEAR * max(costs, default=0.0)]
    for limit, line in limit_lines(near, [*costs, *near]):
        figure.add_vline(x=limit, line={"dash": "dash", "width": 1.2, "color": COLOURS[1]})
        figure.add_annotation(x=limit, y=1, yref="paper", yshift=-16 * line, text=f"{limit:g}", showarrow=False,
                              xanchor="left", yanchor="top", font={"color": _NAMES}, bgcolor="white")  # fmt: skip
    return _made(figure, x, y, height=480)


def _add_labels(
    figure: Any, labels: Sequence[Label], points: Sequence[tuple[float, float]], whose: str, colour: str
) -> None:
    if labels:
        places = name_places([(label.name, label.x, label.y) for label in labels], points)
        figure.add_scatter(
            x=[label.x for label in labels],
            y=[label.y for label in labels],
            customdata=[label.number for label in labels],
            mode="markers+text",
            text=[_escaped(label.name) if place else "" for label, place in zip(labels, places, strict=True)],
            textposition=[" ".join(place or ("bottom", "left")) for place in places],
            textfont={"color": INK},
            cliponaxis=False,
            marker={"size": 13, "color": "rgba(255,255,255,0)", "line": {"width": 2, "color": colour}},
            name=f"{_escaped(whose)} ({len(labels)})",
        )


def agreement(labels: Sequence[Label], unit: str = "ms") -> Figure:
    """Predicted (y) against measured (x), with the diagonal."""
    import plotly.graph_objects as go

    ends = [min(min(p.x, p.y) for p in labels) * 0.95, max(max(p.x, p.y) for p in labels) * 1.05]
    error = 100 * sum(abs(p.y / p.x - 1) for p in labels) / len(labels)
    figure = go.Figure()
    figure.add_scatter(x=ends, y=ends, mode="lines", line={"width": 1.2, "color": "#8b939c"}, name="equal",
                       hoverinfo="skip")  # fmt: skip
    figure.add_scatter(
        x=[p.x for p in labels], y=[p.y for p in labels], customdata=[p.number for p in labels], mode="markers",
        marker={"size": 9, "color": COLOURS[1]}, name=f"finalists ({len(labels)}): mean error {error:.1f} %",
    )  # fmt: skip
    return _made(figure, f"measured ({unit})", f"predicted ({unit})", height=400)


def progress(series: Mapping[str, Sequence[float]], y: str, maximised: bool = False) -> Figure:
    """The best value so far over the evaluations of each search; failed evaluations (NaN) change nothing."""
    import plotly.graph_objects as go

    figure, better = go.Figure(), max if maximised else min
    most = max((len(values) for values in series.values()), default=0)
    for index, (name, values) in enumerate(series.items()):
        best: list[float | None] = []
        for value in values:
            before = best[-1] if best else None
            now = before if math.isnan(value) else value if before is None else better(before, value)
            best.append(now)
        figure.add_scatter(
            x=list(range(1, len(best) + 1)), y=best, mode="lines+markers" if len(best) < 2 else "lines",
            line={"shape": "hv", "width": 2, **_line(index)}, name=_escaped(name),
            hovertemplate="evaluation %{x}: %{y:.5g}<extra></extra>",
        )  # fmt: skip
    made = _made(figure, "evaluations of this search", y, height=400)
    return _whole(made, "xaxis", most)


def bars(series: Mapping[str, Mapping[str, float]], x: str) -> Figure:
    """Horizontal bars from 0, one row for each name, the longest of the first series on top."""
    import plotly.graph_objects as go

    first: Mapping[str, float] = next(iter(series.values()), {})
    names = sorted(first, key=lambda name: (first[name], name))
    figure = go.Figure()
    for index, (legend, values) in enumerate(series.items()):
        look = {"color": COLOURS[index % len(COLOURS)], "pattern": {"shape": _PATTERNS[index % len(_PATTERNS)]}}
        lengths = [values.get(name, 0.0) for name in names]
        figure.add_bar(x=lengths, y=names, orientation="h", marker=look, name=_escaped(legend),
                       hovertemplate="%{y}: %{x:.2f}<extra></extra>")  # fmt: skip
    made = _made(figure, x, "", height=140 + (12 + 13 * len(series)) * len(names))
    made["layout"]["yaxis"].update(automargin=True, showgrid=False)
    made["layout"]["legend"]["traceorder"] = "normal"
    return made


def curves(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str) -> Figure:
    """Lines ``name -> (x, y)``."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for index, (name, (places, values)) in enumerate(series.items()):
        shown = [None if math.isnan(value) else value for value in values]
        figure.add_scatter(
            x=list(places), y=shown, mode="lines+markers", line={"width": 2, **_line(index)},
            marker={"size": 6, "symbol": SYMBOLS[index % len(SYMBOLS)]}, name=_escaped(name),
            hovertemplate=f"{_escaped(name)}: %{{y:.4g}} after %{{x}}<extra></extra>",
        )  # fmt: skip
    most = max((max(places, default=0) for places, _ in series.values()), default=0)
    return _whole(_made(figure, x, y, height=400), "xaxis", most)


def parallel(
    axes: Sequence[Mapping[str, Any]],
    colour: Sequence[float],
    title: str,
    maximised: bool,
    numbers: Sequence[int] = (),
) -> Figure:
    """Parallel coordinates: an axis for each metric and gene, a line for each architecture.

    Args:
        axes: ``label`` and ``values`` of each, ``ticks`` (number -> text) where they are not plain numbers.
        colour: a number for each line, ``title`` says what; the better, the darker (on dark pages the brighter).
        numbers: of the page's rows behind the lines, from 0 by default.
    """
    import plotly.graph_objects as go

    dimensions = []
    for axis in axes:
        one: dict[str, Any] = {"label": _escaped(axis["label"]), "values": list(axis["values"])}
        if ticks := axis.get("ticks"):
            one |= {"tickvals": list(ticks), "ticktext": [_escaped(text) for text in ticks.values()]}
        dimensions.append(one)
    bar = {"title": {"text": _escaped(title)}, "thickness": 12}
    line = {
        "color": list(colour),
        "colorscale": "Viridis",
        "reversescale": maximised,
        "showscale": True,
        "colorbar": bar,
    }
    hidden = {"size": 1, "color": "rgba(0,0,0,0)"}  # the ends of the axes, which cover its ticks
    fonts = {"labelfont": {"size": 12}, "tickfont": {"size": 11}, "rangefont": hidden}
    figure = go.Figure(go.Parcoords(dimensions=dimensions, line=line, labelangle=-25, labelside="top", **fonts))
    figure.data[0].customdata = list(numbers) or list(range(len(colour)))
    made = _made(figure, "", "", height=480)
    made["layout"]["margin"] = {"l": 70, "r": 120, "t": 130, "b": 20}
    return made


def _line(index: int) -> dict[str, str]:
    return {"color": COLOURS[index % len(COLOURS)], "dash": DASHES[index % len(DASHES)]}


def _made(figure: Any, x: str, y: str, height: int) -> Figure:
    """Turn a figure into plain data, in the page's style."""
    figure.update_layout(template="none", **page_layout(x, y, height, {"l": 70, "r": 50, "t": 50, "b": 60}))
    made: Figure = json.loads(figure.to_json())
    return {"data": made["data"], "layout": {k: v for k, v in made["layout"].items() if k != "template"}}


def page_layout(x: str, y: str, height: int, margin: Mapping[str, int]) -> dict[str, Any]:
    """The layout of every figure of a page, with the titles of its axes; a new one each time."""
    axis = {"gridcolor": GRID, "linecolor": "#8b939c", "zeroline": False, "ticks": "outside", "automargin": True}
    return {
        "height": height,
        "font": {"family": _FONT, "size": 13, "color": INK},
        "margin": dict(margin),
        "modebar": {"orientation": "v"},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"color": INK}},
        "hovermode": "closest",
        "xaxis": {**axis, "title": {"text": _escaped(x)}},
        "yaxis": {**axis, "title": {"text": _escaped(y)}},
    }


def _whole(figure: Figure, axis: str, most: float) -> Figure:
    """An axis of whole numbers has ticks at whole numbers."""
    if most <= _FEW:
        figure["layout"][axis]["dtick"] = 1
    return figure


def _escaped(text: object) -> str:
    """plotly takes labels for a kind of HTML."""
    return escape(str(text), quote=False)
