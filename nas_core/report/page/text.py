"""Figures in words, for readers who do not see them: what is on the axes, how many points, between which values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

__all__ = ["in_words"]

_MOST = 40
"""Bars that are read out one by one."""


def in_words(figure: Mapping[str, Any]) -> str:
    """A few sentences about a figure of :mod:`nas_core.report.page.interactive`."""
    traces = figure["data"]
    lines = [_axes(figure["layout"])] if any("y" in trace for trace in traces) else []
    for trace in traces:
        if trace.get("type") == "parcoords":
            lines += [_range(one["label"], one["values"], one.get("ticktext")) for one in trace["dimensions"]]
        elif trace.get("type") == "bar":
            lines.append(_bars(trace))
        elif "y" in trace:
            lines.append(_points(trace))
    return unescape(" ".join(filter(None, lines)))


def _axes(layout: Mapping[str, Any]) -> str:
    titles = [str(layout.get(axis, {}).get("title", {}).get("text") or "") for axis in ("xaxis", "yaxis")]
    return "; ".join(
        f"{place} axis: {title}" for place, title in zip(("Horizontal", "vertical"), titles, strict=True) if title
    ) + ("." if any(titles) else "")


def _points(trace: Mapping[str, Any]) -> str:
    pairs = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if x is not None and y is not None]
    pairs = [pair for pair in pairs if not isinstance(pair[1], str)]
    if not pairs:
        return ""
    low, high = min(pairs, key=lambda pair: pair[1]), max(pairs, key=lambda pair: pair[1])
    name = str(trace.get("name") or "points")
    count = f"{len(pairs)} point{'s' if len(pairs) > 1 else ''}"
    return f"{name}: {count}, lowest {_number(low[1])} at {_number(low[0])}, highest {_number(high[1])} at" + (
        f" {_number(high[0])}."
    )


def _bars(trace: Mapping[str, Any]) -> str:
    across = trace.get("orientation") == "h"
    names, lengths = (trace["y"], trace["x"]) if across else (trace["x"], trace["y"])
    pairs = list(zip(names, lengths, strict=True))[:: -1 if across else 1]  # plotly puts the first row at the bottom
    more = f" and {len(pairs) - _MOST} more" if len(pairs) > _MOST else ""
    told = ", ".join(f"{name} {_number(length)}" for name, length in pairs[:_MOST])
    return f"{trace.get('name') or 'bars'}: {told}{more}."


def _range(label: str, values: Sequence[float], words: Sequence[str] | None) -> str:
    if words and not any(_is_number(word) for word in words):
        return f"{label}: {', '.join(words)}."
    return f"{label}: {_number(min(values))} to {_number(max(values))}."


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).removeprefix("-").isdigit()
