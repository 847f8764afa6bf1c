"""Interactive figures of measurements and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nas_core.report.figures import Figure, cloud, figure
from nas_core.report.measured.collection import Collection, Floats
from nas_core.report.measured.evaluation import Evaluation

BAND = 0.1
"""Half width of the band around the diagonal, relative to the value."""
_WIDE = 20.0
"""Ratio of the largest to the smallest value above which an axis is logarithmic."""
_MOST_BARS = 250
_GREY = {"width": 1.2, "color": "#8b939c"}


def sizes(collection: Collection, name: str, title: str) -> Figure:
    """Return a plot of latency against ``params_m`` or ``flops_g``, one colour per family."""
    x, y = collection.values(name), collection.values("latency_ms")
    families = np.array([network.family for network in collection.networks])
    data = []
    for index, family in enumerate(collection.families):
        places = np.flatnonzero((families == family) & np.isfinite(x))
        if len(places):
            data.append(cloud(family, x[places], y[places], places.tolist(), index))
    return figure(data, title, "measured latency (ms)", 520, log_x=_wide(x), log_y=_wide(y))


def agreement(evaluation: Evaluation, numbers: Sequence[int], unit: str, relative: bool = True) -> Figure:
    """Return a plot of predicted against measured values; training data are pale.

    Args:
        numbers: row index of each prediction.
        relative: draw a 10 % band, on logarithmic axes if values vary widely.
    """
    everything = np.concatenate([evaluation.measured, evaluation.predicted])
    low, high = float(everything.min()), float(everything.max())
    log = relative and _wide(everything)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = (low / 1.15, high * 1.15) if log else (low - room, high + room)
    ends = np.geomspace(low, high, 40) if log else np.linspace(low, high, 40)
    data: list[dict[str, Any]] = []
    if relative:
        band = np.concatenate([ends * (1 + BAND), ends[::-1] * (1 - BAND)])
        data.append(
            {"type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": "rgba(139,147,156,0.18)",
             "line": {"width": 0, "color": "#c9ced4"}, "name": "within 10 %", "hoverinfo": "skip",
             "x": [*ends.tolist(), *ends[::-1].tolist()], "y": band.tolist()}
        )  # fmt: skip
    data.append(
        {"type": "scatter", "mode": "lines", "line": _GREY, "name": "equal", "hoverinfo": "skip",
         "x": [low, high], "y": [low, high]}
    )  # fmt: skip
    rows = np.asarray(numbers)
    for index, family in enumerate(dict.fromkeys(evaluation.families.tolist())):
        members = np.flatnonzero(evaluation.families == family)
        trace = cloud(
            family, evaluation.measured[members], evaluation.predicted[members], rows[members].tolist(), index
        )
        if evaluation.held_out and evaluation.learned is not None:
            trace["marker"]["opacity"] = np.where(evaluation.learned[members], 0.22, 0.9).tolist()
        if evaluation.has_deviation and len(rows) <= _MOST_BARS:
            trace["error_y"] = {"type": "data", "array": evaluation.deviation[members].tolist(), "thickness": 0.8,
                                "width": 0, "color": "rgba(68,80,92,0.35)"}  # fmt: skip
        data.append(trace)
    plot = figure(data, f"measured ({unit})", f"predicted ({unit})", 560, log_x=log, log_y=log)
    for axis in ("xaxis", "yaxis"):
        plot["layout"][axis]["range"] = [float(np.log10(end)) if log else end for end in (low, high)]
    return plot


def drift(collection: Collection) -> Figure:
    """Return a plot of the clock drift: reference latency, and measured over corrected latency of each network."""
    order = np.argsort(collection.values("when"), kind="stable")
    x = np.arange(1, len(order) + 1)
    reference = collection.values("reference_ms")[order]
    state = 100 * (reference / np.median(reference) - 1)
    raw = 100 * (collection.values("raw_ms") / collection.values("latency_ms") - 1)[order]
    finite = np.isfinite(raw)
    data = [
        {"type": "scatter", "mode": "markers", "name": f"{collection.noun}: measured over corrected latency",
         "customdata": order[finite].tolist(), "x": x[finite].tolist(), "y": raw[finite].tolist(),
         "marker": {"size": 6, "color": "#d1662b", "opacity": 0.7}},
        {"type": "scatter", "mode": "lines", "name": "reference", "hoverinfo": "skip", "x": x.tolist(),
         "y": state.tolist(), "line": {"width": 1.8, "color": "#1f6fb4"}},
    ]  # fmt: skip
    return figure(data, f"{collection.noun} in the order of measurement", "slower than the median (%)", 420)


def coverage(shares: Mapping[float, float]) -> Figure:
    """Return a plot of the coverage of prediction intervals: expected -> observed, in percent."""
    data = [
        {"type": "scatter", "mode": "lines", "line": _GREY, "name": "expected", "hoverinfo": "skip",
         "x": [0, 100], "y": [0, 100]},
        {"type": "scatter", "mode": "lines+markers", "line": {"width": 2, "color": "#1f6fb4"}, "name": "observed",
         "x": list(shares), "y": list(shares.values())},
    ]  # fmt: skip
    return figure(data, "expected inside the interval (%)", "observed inside (%)", 400)


def _wide(values: Floats) -> bool:
    good = values[np.isfinite(values)]
    return bool(len(good) and good.min() > 0 and good.max() > _WIDE * good.min())
