"""Metrics of a predictor: gain of a search, interval coverage, and predictions of each part of a weighted mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.predictor import AccuracyModel, NNFormerPredictor, kendall_tau

Array = NDArray[np.float64]
CHOSEN = 50
"""Number of top predictions that a search would train."""
TOP = 0.1
"""Fraction of networks that counts as best."""


def of_a_search(predicted: Array, true: Array, higher_is_better: bool = True) -> dict[str, float]:
    """Return the gain of a search from predictions ``(G,)``.

    Returns:
        ``best_of_50``: true rank, from 1, of the best among the 50 top predictions; ``tau_top_tenth``: Kendall's tau
        among the best tenth.
    """
    sign = 1 if higher_is_better else -1
    guess, truth = sign * predicted, sign * true
    chosen = np.argsort(-guess, kind="stable")[:CHOSEN]
    top = truth >= np.quantile(truth, 1 - TOP)
    place = 1 + int((truth > truth[chosen].max()).sum())
    return {"best_of_50": place, "tau_top_tenth": kendall_tau(guess[top], truth[top])}


def within_spread(predicted: Array, spread: Array, values: Array) -> dict[str, float]:
    """Return the fractions of networks within one and two predicted standard deviations."""
    off = np.abs(values - predicted)
    return {f"within_{times}": float(np.mean(off <= times * spread)) for times in (1, 2)}


def foreseen(predictor: Any, graphs: Graphs) -> tuple[Array, Array | None]:
    """Return predictions ``(G,)`` and standard deviations ``(G,)``, None if not available."""
    if not isinstance(predictor, AccuracyModel):
        return predictor.predict(graphs), None
    return predictor.predictions(graphs)


def parts_of(predictor: Any, graphs: Graphs) -> Mapping[str, Array]:
    """Return predictions ``(G,)`` of each model of a weighted mean; empty for a single model."""
    if not isinstance(predictor, NNFormerPredictor) or predictor.statistics is None:
        return {}
    return predictor.predict_components(graphs)
