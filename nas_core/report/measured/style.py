"""What figures of many families share: a colour with a shape for each, axes, and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from nas_core.report.measured.collection import Floats
from nas_core.report.plots import COLOURS

__all__ = ["Figure", "figure", "mark", "span"]

Figure = dict[str, Any]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down")
_INK, _GRID, _AXIS = "#22272d", "#e6e9ec", "#8b939c"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'
_TICKS = [digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5)]
"""Where logarithmic axes have ticks: 1, 2, 5, 10, 20 and so on."""


def mark(index: int) -> tuple[str, str]:
    """Colour and shape of a family by its place: no two of the first 56 have both in common."""
    return COLOURS[index % len(COLOURS)], _SYMBOLS[index % len(_SYMBOLS)]


def span(values: Floats, log: bool) -> tuple[float, float]:
    """The ends of an axis that holds these values with some room."""
    low, high = float(values.min()), float(values.max())
    if log:
        return low / 1.15, high * 1.15
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def figure(
    data: Sequence[dict[str, Any]], x: str, y: str, height: int, log_x: bool = False, log_y: bool = False
) -> Figure:
    """A figure as the page's script draws it."""
    axis = {"gridcolor": _GRID, "linecolor": _AXIS, "zeroline": False, "ticks": "outside", "automargin": True}
    log = {"type": "log", "tickvals": _TICKS, "ticktext": [f"{tick:g}" for tick in _TICKS]}
    return {
        "data": [{**trace, "name": escape(str(trace["name"]), quote=False)} for trace in data],
        "layout": {
            "height": height,
            "font": {"family": _FONT, "size": 13, "color": _INK},
            "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
            "modebar": {"orientation": "v"},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "hoverlabel": {"align": "left", "bgcolor": "white", "font": {"color": _INK}},
            "hovermode": "closest",
            "xaxis": {**axis, **(log if log_x else {}), "title": {"text": escape(x, quote=False)}},
            "yaxis": {**axis, **(log if log_y else {}), "title": {"text": escape(y, quote=False)}},
        },
    }
