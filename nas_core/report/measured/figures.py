"""Figures of measurements and predictions that answer to the mouse, families apart by colour and by shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.report.figures import Figure, cloud, figure
from nas_core.report.measured.collection import Collection, Floats
from nas_core.report.measured.judged import Judged

BAND = 0.1
"""The band around the diagonal: 10 % either side."""
_WIDE = 20.0
"""Largest over smallest value from which an axis is logarithmic."""
_MOST_BARS = 250
"""Points up to which each has its error bar."""


def sizes(collection: Collection, name: str, title: str) -> Figure:
    """Latency over a size of the networks, ``params_m`` or ``flops_g``."""
    x, y = collection.values(name), collection.values("latency_ms")
    data = []
    for index, family in enumerate(collection.families):
        own = [place for place in collection.of(family) if np.isfinite(x[place])]
        if own:
            data.append(cloud(family, x[own], y[own], own, index))
    made = figure(data, title, "measured latency (ms)", 520, log_x=_wide(x), log_y=_wide(y))
    return made


def agreement(judged: Judged, numbers: Sequence[int], unit: str, relative: bool = True) -> Figure:
    """Predicted over measured with the diagonal and, where errors are ``relative``, 10 % either side; learned ones
    pale."""
    everything = np.concatenate([judged.measured, judged.predicted])
    log = relative and _wide(everything)
    low, high = _span(everything, log)
    ends = np.geomspace(low, high, 40) if log else np.linspace(low, high, 40)
    data: list[dict[str, Any]] = []
    if relative:
        edges = {"x": [*ends, *ends[::-1]], "y": [*(ends * (1 + BAND)), *(ends[::-1] * (1 - BAND))]}
        data.append(
            {"type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": "rgba(139,147,156,0.18)",
             "line": {"width": 0, "color": "#c9ced4"}, "name": "within 10 %", "hoverinfo": "skip", **_plain(edges)}
        )  # fmt: skip
    data.append(
        {"type": "scatter", "mode": "lines", "line": {"width": 1.2, "color": "#8b939c"}, "name": "equal",
         "hoverinfo": "skip", "x": [low, high], "y": [low, high]}
    )  # fmt: skip
    place = np.asarray(numbers)
    families = list(dict.fromkeys(judged.families.tolist()))
    for index, family in enumerate(families):
        own = np.flatnonzero(judged.families == family)
        trace = cloud(family, judged.measured[own], judged.predicted[own], place[own].tolist(), index)
        if judged.held_out and judged.learned is not None:
            trace["marker"]["opacity"] = [0.22 if known else 0.9 for known in judged.learned[own]]
        if judged.spreads and len(judged.measured) <= _MOST_BARS:
            trace["error_y"] = {"type": "data", "array": judged.spread[own].tolist(), "thickness": 0.8, "width": 0,
                                "color": "rgba(68,80,92,0.35)"}  # fmt: skip
        data.append(trace)
    made = figure(data, f"measured ({unit})", f"predicted ({unit})", 560, log_x=log, log_y=log)
    for axis in ("xaxis", "yaxis"):
        made["layout"][axis]["range"] = [float(np.log10(end)) if log else end for end in (low, high)]
    return made


def drift(collection: Collection) -> Figure:
    """The machine's state over the collection by its reference, and what it did to each network: as measured, and with
    the drift divided out."""
    order = np.argsort(collection.values("when"), kind="stable")
    x = np.arange(1, len(order) + 1)
    reference = collection.values("reference_ms")[order]
    state = 100 * (reference / np.median(reference) - 1)
    raw = 100 * (collection.values("raw_ms") / collection.values("latency_ms") - 1)[order]
    known = np.isfinite(raw)
    data = [
        {"type": "scatter", "mode": "markers", "name": f"{collection.what} as measured, against drift divided out",
         "customdata": order[known].tolist(),
         "marker": {"size": 6, "color": "#d1662b", "opacity": 0.7}, **_plain({"x": x[known], "y": raw[known]})},
        {"type": "scatter", "mode": "lines", "name": "reference around them", "hoverinfo": "skip",
         "line": {"width": 1.8, "color": "#1f6fb4"}, **_plain({"x": x, "y": state})},
    ]  # fmt: skip
    return figure(data, f"{collection.what} in the order of their measurement", "slower than usual (%)", 420)


def repeats(collection: Collection) -> Figure:
    """The standard error of each network, a row for each family; of one family alone over the latency."""
    errors, times = collection.values("error_percent"), collection.values("latency_ms")
    data = []
    for index, family in enumerate(collection.families):
        own = [place for place in collection.of(family) if np.isfinite(errors[place])]
        if own:
            data.append(cloud(family, errors[own], times[own], own, index))
            if len(collection.families) > 1:
                data[-1]["y"] = [family] * len(own)
    if len(collection.families) == 1:
        return figure(data, "standard error (%)", "measured latency (ms)", 400, log_y=_wide(times))
    made = figure(data[::-1], "standard error (%)", "", 120 + 26 * len(data))
    made["layout"]["yaxis"] |= {"type": "category", "title": {"text": ""}}
    return made


def calibration(shares: Mapping[float, float]) -> Figure:
    """The share of measurements inside a range that should hold so many: expected -> found, in percent."""
    data = [
        {"type": "scatter", "mode": "lines", "line": {"width": 1.2, "color": "#8b939c"}, "name": "as it should be",
         "hoverinfo": "skip", "x": [0, 100], "y": [0, 100]},
        {"type": "scatter", "mode": "lines+markers", "line": {"width": 2, "color": "#1f6fb4"}, "name": "found",
         "x": list(shares), "y": list(shares.values()),
         "hovertemplate": "%{y:.0f} % where %{x:.0f} % are expected<extra></extra>"},
    ]  # fmt: skip
    return figure(data, "expected inside the range (%)", "found inside (%)", 400)


def _wide(values: NDArray[np.float64]) -> bool:
    good = values[np.isfinite(values)]
    return bool(len(good) and good.min() > 0 and good.max() > _WIDE * good.min())


def _plain(axes: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: [float(value) for value in values] for name, values in axes.items()}


def _span(values: Floats, log: bool) -> tuple[float, float]:
    """The ends of an axis that holds these values with some room."""
    low, high = float(values.min()), float(values.max())
    if log:
        return low / 1.15, high * 1.15
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room
