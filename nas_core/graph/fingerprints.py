"""Fingerprints of the graphs that a model was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.graph.graphs import Graphs

MOST = 20_000
"""Largest number of graphs with fingerprints, to bound file sizes."""
_DIGITS = 12


def fingerprint(*arrays: ArrayLike | None) -> str:
    """Return twelve hexadecimal digits, equal for arrays of equal values and types."""
    digest = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray([] if array is None else array)
        digest.update(f"|{values.dtype.str}|{values.shape}|".encode() + values.tobytes())
    return digest.hexdigest()[:_DIGITS]


def fingerprints(graphs: Graphs) -> list[str]:
    """Return the fingerprint of each graph; none for more than :data:`MOST` graphs."""
    if len(graphs) > MOST:
        return []
    return [fingerprint(g.ops, g.edges, g.attributes, g.shapes, g.costs, g.static) for g in graphs]


def known_among(info: Mapping[str, Any], prints: list[str]) -> NDArray[np.bool_] | None:
    """Return a mask of the fingerprints under ``learned`` in a model's ``info``; None if there are none."""
    learned = info.get("learned")
    if not isinstance(learned, list) or not learned or not prints:
        return None
    return np.isin(np.array(prints), np.array(list(map(str, learned))))
