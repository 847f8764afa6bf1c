"""Metrics of a predictor other than Kendall's tau: gain of a search, coverage, and the parts of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.predictor import AccuracyModel, NNFormerPredictor, kendall_tau

Array = NDArray[np.float64]
CHOSEN = 50
"""Networks of best prediction, of which a search would train all."""
TOP = 0.1
"""Share of the networks that counts as the best ones."""


def of_a_search(predicted: Array, true: Array, higher_is_better: bool = True) -> dict[str, float]:
    """Return what a search gets from predictions ``(G,)`` of networks.

    Returns:
        ``best_of_50``: place in the true order, from 1, of the best among the 50 networks of best prediction;
        ``tau_top_tenth``: Kendall's tau among the truly best tenth.
    """
    sign = 1 if higher_is_better else -1
    guess, truth = sign * predicted, sign * true
    chosen = np.argsort(-guess, kind="stable")[:CHOSEN]
    top = truth >= np.quantile(truth, 1 - TOP)
    place = 1 + int((truth > truth[chosen].max()).sum())
    return {"best_of_50": place, "tau_top_tenth": kendall_tau(guess[top], truth[top])}


def within_spread(predicted: Array, spread: Array, values: Array) -> dict[str, float]:
    """Return the shares of networks whose value is within one and two predicted standard deviations."""
    off = np.abs(values - predicted)
    return {f"within_{times}": float(np.mean(off <= times * spread)) for times in (1, 2)}


def foreseen(predictor: Any, graphs: Graphs) -> tuple[Array, Array | None]:
    """Return predictions ``(G,)`` and, if available, their standard deviation ``(G,)``."""
    if not isinstance(predictor, AccuracyModel):
        return predictor.predict(graphs), None
    return predictor.predictions(graphs)


def parts_of(predictor: Any, graphs: Graphs) -> Mapping[str, Array]:
    """Return the predictions ``(G,)`` of each part of a fitted mixture; empty for predictors of one part."""
    if not isinstance(predictor, NNFormerPredictor) or predictor.statistics is None:
        return {}
    return predictor.predict_parts(graphs)
