"""Fingerprints of the graphs that a model was trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.graph.graphs import Graphs

MOST = 20_000
"""Largest number of graphs whose fingerprints are stored in a model file."""
_DIGITS = 12


def fingerprint(*arrays: ArrayLike | None) -> str:
    """Return a hash of arrays as 12 hexadecimal digits."""
    digest = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray([] if array is None else array)
        digest.update(f"|{values.dtype.str}|{values.shape}|".encode() + values.tobytes())
    return digest.hexdigest()[:_DIGITS]


def fingerprints(graphs: Graphs) -> list[str]:
    """Return the fingerprint of each graph, or an empty list for more than :data:`MOST` graphs."""
    if len(graphs) > MOST:
        return []
    return [fingerprint(g.ops, g.edges, g.attributes, g.shapes, g.costs, g.static) for g in graphs]


def known_among(info: Mapping[str, Any], prints: list[str]) -> NDArray[np.bool_] | None:
    """Return a boolean mask of ``prints`` in the training data of the model of ``info``, or None if unknown."""
    learned = info.get("learned")
    if not isinstance(learned, list) or not learned or not prints:
        return None
    return np.isin(np.array(prints), np.array(list(map(str, learned))))
