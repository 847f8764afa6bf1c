"""Which graphs a predictor learns from and which judge it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs

__all__ = ["holdout_split"]

LEAST = 2
"""Graphs on either side."""


def holdout_split(graphs: Graphs, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ascending indices of training and held-out graphs. Equal graphs stay on one side: a graph that was learned says
    nothing about graphs that were not.

    Args:
        share: of all graphs to hold out, roughly where many are equal; 0: none.

    Raises:
        ConfigError: the share is not from 0 to below 1.
        DataError: fewer than two graphs would be left on a side.
    """
    if not 0 <= share < 1:
        raise ConfigError(f"holdout is {share}; expected a share from 0 to below 1, such as 0.1")
    everything = np.arange(len(graphs))
    if not share:
        return everything, everything[:0]
    group = graphs.distinct()[1]
    order = np.random.default_rng([seed, 2]).permutation(group.max() + 1)
    reached = np.cumsum(np.bincount(group)[order])
    taken = order[: np.searchsorted(reached, max(LEAST, round(share * len(graphs)))) + 1]
    held_out = np.isin(group, taken)
    if held_out.sum() < LEAST or (~held_out).sum() < LEAST:
        raise DataError(
            f"{len(graphs)} graphs, {len(order)} of them different, of which {held_out.sum()} would be held out;"
            f" expected {LEAST} or more on either side: give more records, or --holdout 0 to hold out none"
        )
    return everything[~held_out], everything[held_out]
