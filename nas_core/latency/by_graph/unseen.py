"""What networks have that no training network has, and how much less a prediction is then worth."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import CORRECTED, RELEASED

ENCODINGS = {"corrected": CORRECTED, "released": RELEASED}
"""Names of the operations by encoding."""
Ranges = dict[str, list[float]]
"""Least and most of each size."""


class _Size(NamedTuple):
    """One number of a whole network that may leave the training's range."""

    unit: float
    """How many a 1 of the static feature is."""
    margin: float
    """Times that networks may be larger or smaller before they count as unlike the training's."""
    spread: float
    """Relative standard deviation for each factor e beyond."""


_STATIC = {
    "batch": _Size(1.0, 1.0, 0.15),
    "GFLOPs": _Size(1.0, 2.0, 0.15),
    "million parameters": _Size(10.0, 2.0, 0.15),
    "million elements of memory access": _Size(10.0, 2.0, 0.15),
}
"""In the order of the static features."""
_POSITIONS = "attended positions"
_SIZES = {**_STATIC, _POSITIONS: _Size(1.0, 1.0, 0.35)}
TRUSTED_SPREAD = 0.5
"""Relative standard deviation, through sizes beyond the training's, up to which a prediction can be a limit."""
_FARTHEST = math.log(1000.0)
"""Distance from which on a spread, as large as the prediction by then, says no more by growing."""


def unseen_operations(graphs: Graphs, known: frozenset[int], encoding: str) -> dict[int, str]:
    """Indices and names of the operations that are not known."""
    names = ENCODINGS[encoding]
    found = sorted({int(op) for op in np.unique(graphs.ops)} - known)
    return {op: names[op] if op < len(names) else str(op) for op in found}


def ranges_of(graphs: Graphs, encoding: str = "corrected") -> Ranges:
    """Least and most of each size that these graphs have."""
    found = {}
    for name, values in _sizes_of(graphs, encoding).items():
        there = values[np.isfinite(values)]
        if len(there):
            found[name] = [float(f"{edge:.6g}") for edge in (there.min(), there.max())]
    return found


def beyond(graphs: Graphs, ranges: Ranges, encoding: str = "corrected") -> dict[str, str]:
    """What sizes leave their range, by name: the farthest of them in words."""
    found = {}
    for name, (values, distances) in _distances(graphs, ranges, encoding).items():
        farthest = int(np.argmax(distances))
        if distances[farthest] > 0:
            least, most = ranges[name]
            trained = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            found[name] = f"{name} {values[farthest]:.4g} where training networks have {trained}"
    return found


def extrapolation_spread(graphs: Graphs, ranges: Ranges, encoding: str = "corrected") -> NDArray[np.float64]:
    """Relative standard deviation ``(G,)`` that a prediction has more because the network lies beyond the training's
    sizes; 0 within.

    A latency model learns how log latency goes with log sizes. Beyond them it goes on with slopes that are known but
    roughly, so its error grows in proportion to the logarithm of the factor beyond; sizes count as independent. What a
    factor of e costs was measured with the shipped model (``python -m benchmarks extrapolation``).
    """
    parts = [_SIZES[name].spread * far for name, (_, far) in _distances(graphs, ranges, encoding).items()]
    total: NDArray[np.float64] = np.sqrt(np.square([np.zeros(len(graphs)), *parts]).sum(0))
    return total


def _distances(
    graphs: Graphs, ranges: Ranges, encoding: str
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Sizes ``(G,)`` and logarithms ``(G,)`` of the factor by which they lie beyond the range and its margin, 0
    within."""
    found = {}
    for name, values in _sizes_of(graphs, encoding).items():
        if name not in ranges:
            continue
        (least, most), margin = ranges[name], _SIZES[name].margin
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = np.log(values / (margin * most)), np.log(least / margin / values)
        far = np.nan_to_num(np.maximum(above, below), nan=0.0)
        found[name] = (values, np.clip(far, 0.0, _FARTHEST))
    return found


def _sizes_of(graphs: Graphs, encoding: str) -> dict[str, NDArray[np.float64]]:
    """Each size ``(G,)``, nan where a network has none; nothing of graphs without static features."""
    if graphs.static is None or graphs.static.shape[1] != len(_STATIC):
        return {}
    columns = graphs.static.T.astype(np.float64)
    found = {name: size.unit * column for (name, size), column in zip(_STATIC.items(), columns, strict=True)}
    if encoding == "corrected" and graphs.shapes is not None:
        found[_POSITIONS] = _positions(graphs)
    return found


def _positions(graphs: Graphs) -> NDArray[np.float64]:
    """The most positions that an attention of each network looks at ``(G,)``: the last dimension of its softmax, or the
    length of a fused operator's output. A softmax over classes or words is none."""
    assert graphs.shapes is not None
    shapes = graphs.shapes.astype(np.float64)
    deep = shapes[:, 3] > 0
    square = ~deep & (shapes[:, 1] > 0) & (shapes[:, 1] == shapes[:, 2])  # heads merged with the batch
    seen = np.where(deep, shapes[:, 3], np.where(square, shapes[:, 2], np.nan))
    positions = np.where(graphs.ops == CORRECTED.index("softmax"), seen, np.nan)
    fused = graphs.ops == CORRECTED.index("attention")
    positions[fused] = np.where(deep, shapes[:, 2], shapes[:, 1])[fused]
    found = np.full(len(graphs), -np.inf)
    np.fmax.at(found, np.repeat(np.arange(len(graphs)), graphs.sizes), positions)
    return np.where(found > 0, found, np.nan)
