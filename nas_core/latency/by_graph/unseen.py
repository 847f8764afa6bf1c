"""Operations and sizes outside the training data of a latency model, and the error due to extrapolation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KIND_NAMES

Ranges = dict[str, list[float]]
"""Minimum and maximum of each size of the training networks."""


class _Size(NamedTuple):
    """Size of a network, such as its FLOPs, that is compared with the training range."""

    unit: float
    """Factor from the static feature to the size."""
    margin: float
    """Factor by which a size may exceed the training range."""
    std: float
    """Relative standard deviation for each factor of e outside the range."""


_STATIC = {
    "batch": _Size(1.0, 1.0, 0.15),
    "GFLOPs": _Size(1.0, 2.0, 0.15),
    "million parameters": _Size(10.0, 2.0, 0.15),
    "million elements of memory access": _Size(10.0, 2.0, 0.15),
}
_POSITIONS = "attended positions"
_SIZES = {**_STATIC, _POSITIONS: _Size(1.0, 1.0, 0.35)}
# maximum relative standard deviation due to extrapolation of a prediction that is compared with a latency limit
MAX_TRUSTED_STD = 0.5
_MAX_DISTANCE = math.log(1000.0)


def unseen_operations(graphs: Graphs, known: frozenset[int]) -> dict[int, str]:
    return {op: KIND_NAMES[op] for op in sorted(set(np.unique(graphs.ops).tolist()) - known)}


def ranges_of(graphs: Graphs) -> Ranges:
    ranges = {}
    for name, values in _sizes_of(graphs).items():
        finite = values[np.isfinite(values)]
        if len(finite):
            ranges[name] = [float(f"{edge:.6g}") for edge in (finite.min(), finite.max())]
    return ranges


def sizes_out_of_range(graphs: Graphs, ranges: Ranges) -> dict[str, str]:
    """Return a text for each size outside its training range, by name of the size, with the most extreme value."""
    texts = {}
    for name, (values, distances) in _distances(graphs, ranges).items():
        farthest = int(np.argmax(distances))
        if distances[farthest] > 0:
            low, high = ranges[name]
            trained = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
            texts[name] = f"{name} {values[farthest]:.4g} where training networks have {trained}"
    return texts


def extrapolation_std(graphs: Graphs, ranges: Ranges) -> NDArray[np.float64]:
    """Return the relative standard deviation ``(G,)`` due to sizes outside the training range; 0 inside."""
    deviations = [_SIZES[name].std * distances for name, (_, distances) in _distances(graphs, ranges).items()]
    return np.asarray(np.sqrt(np.square([np.zeros(len(graphs)), *deviations]).sum(0)))


def _distances(graphs: Graphs, ranges: Ranges) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    distances = {}
    for name, values in _sizes_of(graphs).items():
        if name in ranges:
            (low, high), margin = ranges[name], _SIZES[name].margin
            with np.errstate(divide="ignore", invalid="ignore"):
                above, below = np.log(values / (margin * high)), np.log(low / margin / values)
            distance = np.nan_to_num(np.maximum(above, below), nan=0.0)
            distances[name] = (values, np.clip(distance, 0.0, _MAX_DISTANCE))
    return distances


def _sizes_of(graphs: Graphs) -> dict[str, NDArray[np.float64]]:
    if graphs.static is None or graphs.static.shape[1] != len(_STATIC):
        return {}
    columns = graphs.static.T.astype(np.float64)
    sizes = {name: size.unit * column for (name, size), column in zip(_STATIC.items(), columns, strict=True)}
    if graphs.shapes is not None:
        sizes[_POSITIONS] = _positions(graphs)
    return sizes


def _positions(graphs: Graphs) -> NDArray[np.float64]:
    """Return the maximum number of attended positions ``(G,)``; NaN without attention."""
    assert graphs.shapes is not None
    shapes = graphs.shapes.astype(np.float64)
    deep = shapes[:, 3] > 0
    square = ~deep & (shapes[:, 1] > 0) & (shapes[:, 1] == shapes[:, 2])  # heads merged with the batch
    softmax = np.where(deep, shapes[:, 3], np.where(square, shapes[:, 2], np.nan))
    positions = np.where(graphs.ops == KIND_NAMES.index("softmax"), softmax, np.nan)
    fused = graphs.ops == KIND_NAMES.index("attention")
    positions[fused] = np.where(deep, shapes[:, 2], shapes[:, 1])[fused]
    most = np.full(len(graphs), -np.inf)
    np.fmax.at(most, np.repeat(np.arange(len(graphs)), graphs.sizes), positions)
    return np.where(most > 0, most, np.nan)
