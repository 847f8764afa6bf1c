"""What figures of many families share: a colour with a shape for each, axes, and ranges."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from nas_core.report.measured.collection import Floats
from nas_core.report.page.interactive import page_layout
from nas_core.report.plots import COLOURS

__all__ = ["Figure", "figure", "mark", "span"]

Figure = dict[str, Any]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down")
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
    layout = page_layout(x, y, height, {"l": 60, "r": 20, "t": 20, "b": 50})
    for axis, logarithmic in (("xaxis", log_x), ("yaxis", log_y)):
        if logarithmic:
            layout[axis] |= {"type": "log", "tickvals": _TICKS, "ticktext": [f"{tick:g}" for tick in _TICKS]}
    return {"data": [{**trace, "name": escape(str(trace["name"]), quote=False)} for trace in data], "layout": layout}
