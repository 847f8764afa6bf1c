"""What networks have that no training network has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import CORRECTED, RELEASED

__all__ = ["ENCODINGS", "Ranges", "beyond", "check_ranges", "ranges_of", "unseen_operations"]

ENCODINGS = {"corrected": CORRECTED, "released": RELEASED}
"""Names of the operations by encoding."""
Ranges = dict[str, list[float]]
"""Least and most of each static feature."""
_UNITS = {"batch": 1.0, "GFLOPs": 1.0, "million parameters": 10.0, "million elements of memory access": 10.0}
"""Of the static features, and how many a 1 of the feature is."""
_MARGIN = 2.0
"""Times that networks may be larger or smaller; batches may not."""


def unseen_operations(graphs: Graphs, known: frozenset[int], encoding: str) -> dict[int, str]:
    """Indices and names of the operations that are not known."""
    names = ENCODINGS[encoding]
    found = sorted({int(op) for op in np.unique(graphs.ops)} - known)
    return {op: names[op] if op < len(names) else str(op) for op in found}


def ranges_of(graphs: Graphs) -> Ranges:
    """Of the static features ``(G, 4)``; of graphs without, none."""
    if graphs.static is None or graphs.static.shape[1] != len(_UNITS):
        return {}
    columns = graphs.static.T.astype(np.float64)
    return {
        name: [float(f"{unit * edge:.6g}") for edge in (column.min(), column.max())]
        for (name, unit), column in zip(_UNITS.items(), columns, strict=True)
    }


def beyond(graphs: Graphs, ranges: Ranges) -> dict[str, str]:
    """What static features leave their range, by name: the farthest of them in words."""
    found = {}
    for name, (low, high) in ranges_of(graphs).items():
        least, most = ranges.get(name, (0.0, np.inf))
        margin = 1.0 if name == "batch" else _MARGIN
        value = high if high > margin * most else low
        if not least / margin <= value <= margin * most:
            trained = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            found[name] = f"{name} {value:.4g} where training networks have {trained}"
    return found


def check_ranges(info: Mapping[str, Any]) -> None:
    """Of a file; files of earlier releases have none.

    Raises:
        DataError: they are no ranges.
    """
    given = info.get("ranges", {})
    if not isinstance(given, dict) or not given.keys() <= _UNITS.keys():
        raise DataError("ranges of no static features")
    for edges in given.values():
        numbers = isinstance(edges, list) and len(edges) == 2 and all(type(x) in (int, float) for x in edges)
        if not numbers or not 0 <= edges[0] <= edges[1]:
            raise DataError(f"a range {edges!r}")
