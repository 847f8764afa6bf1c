"""Graphs as a model can read them: with ends, and with operations that it has an index for."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from nas_core.graph import Graphs, lacking_ends

__all__ = ["MOST", "missing_ends", "within"]

MOST = 0.5
"""Share of graphs without one input and one output, above which all get them."""

_log = logging.getLogger(__name__)


def within(graphs: Graphs, operations: int, known: Collection[int]) -> Graphs:
    """The same graphs where every operation index is below ``operations``: one that is not becomes an index that no
    training graph has, so that it is none of the operations it was taught; where there is none, the last.

    Args:
        known: operation indices of the training graphs.
    """
    if int(graphs.ops.max(initial=0)) < operations:
        return graphs
    spare = next((index for index in range(operations) if index not in known), operations - 1)
    return replace(graphs, ops=np.where(graphs.ops < operations, graphs.ops, spare).astype(graphs.ops.dtype))


def missing_ends(graphs: Graphs, common: tuple[int, int] | None) -> tuple[int, int] | None:
    """Operation indices of an input and an output to put around graphs, most of which have not one of either; None
    where most have.

    Args:
        common: operations at the ends of graphs that have them.
    """
    apart = lacking_ends(graphs, common)
    if apart.mean() <= MOST:
        if apart.any():
            _log.warning(
                "%d of %d graphs have several nodes that nothing feeds, or several that feed nothing, the first of them"
                " graph %d (from 0): they are taken as they are; with_ends of nas_core.graph gives all the same ends",
                apart.sum(), len(apart), apart.argmax(),
            )  # fmt: skip
        return None
    first = max(int(graphs.ops.max()) + 1, len(graphs.operations or ()))
    _log.info(
        "most graphs have several nodes that nothing feeds, or several that feed nothing: each gets an input before and"
        " an output behind it"
    )
    return first, first + 1
