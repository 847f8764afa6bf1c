"""Metrics of a predictor: gain of a search, interval coverage, and predictions of the components of a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import Graphs
from nas_core.predictor import AccuracyModel, StatisticsPredictor, kendall_tau

Array = NDArray[np.float64]
SELECTED = 50
"""Number of top predictions that a search would train."""
TOP = 0.1
"""Fraction of networks that counts as best."""


def search_gain(predicted: Array, true: Array, higher_is_better: bool = True) -> dict[str, float]:
    """Return the gain of a search from predictions ``(G,)``.

    Returns:
        ``best_of_50``: true rank, from 1, of the best among the 50 top predictions; ``tau_top_tenth``: Kendall's tau
        among the best tenth.
    """
    sign = 1 if higher_is_better else -1
    scores, true_scores = sign * predicted, sign * true
    selected = np.argsort(-scores, kind="stable")[:SELECTED]
    top = true_scores >= np.quantile(true_scores, 1 - TOP)
    rank = 1 + int((true_scores > true_scores[selected].max()).sum())
    return {"best_of_50": rank, "tau_top_tenth": kendall_tau(scores[top], true_scores[top])}


def interval_coverage(predicted: Array, std: Array, values: Array) -> dict[str, float]:
    """Return the fractions of networks within one and two predicted standard deviations."""
    errors = np.abs(values - predicted)
    return {f"within_{factor}": float(np.mean(errors <= factor * std)) for factor in (1, 2)}


def predict_with_std(predictor: Any, graphs: Graphs) -> tuple[Array, Array | None]:
    """Return predictions ``(G,)`` and standard deviations ``(G,)``, None if not available."""
    if not isinstance(predictor, AccuracyModel):
        return predictor.predict(graphs), None
    return predictor.predictions(graphs)


def predict_components(predictor: Any, graphs: Graphs) -> Mapping[str, Array]:
    """Return predictions ``(G,)`` of each model of a weighted mean; empty for a single model."""
    return predictor.predict_components(graphs) if isinstance(predictor, StatisticsPredictor) else {}
