"""Which graphs a model has learned: a short fingerprint of each, kept with the model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.graph.graphs import Graphs

MOST = 20_000
"""Graphs up to which fingerprints are kept: of more the model's file would consist."""
_DIGITS = 12


def fingerprint(*arrays: ArrayLike | None) -> str:
    """Twelve hexadecimal digits of some arrays; equal ones for equal values of equal types."""
    digest = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray([] if array is None else array)
        digest.update(f"|{values.dtype.str}|{values.shape}|".encode() + values.tobytes())
    return digest.hexdigest()[:_DIGITS]


def fingerprints(graphs: Graphs) -> list[str]:
    """One for each graph, of all that it holds; none at all of more than 20,000 graphs."""
    if len(graphs) > MOST:
        return []
    return [fingerprint(one.ops, one.edges, one.attributes, one.shapes, one.costs, one.static) for one in graphs]


def known_among(info: Mapping[str, Any], found: list[str]) -> NDArray[np.bool_] | None:
    """Which of these a model has learned, by the fingerprints under ``learned`` in its ``info``; None if it kept
    none."""
    learned = info.get("learned")
    if not isinstance(learned, list) or not learned or not found:
        return None
    return np.isin(np.array(found), np.array([str(one) for one in learned]))
