"""Ranking of architectures by gradient-boosted trees.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021. The paper's released code
fits values by regression, which needed more evaluations on NAS-Bench-201.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

Array = NDArray[np.float64]


class Ranker(Protocol):
    """Model that orders architectures; smaller scores are better."""

    def fit(self, rows: Rows, values: Array) -> None:
        """Fit to architectures ``(n, slots)`` and values ``(n,)``, from scratch."""

    def score(self, rows: Rows) -> Array:
        """Return scores ``(n,)`` of architectures ``(n, slots)``."""


ROUNDS, MEMBERS = 60, 5
"""Number of trees per model, and number of averaged models."""
MIN_LEAF = 5
"""Smallest number of architectures in a leaf."""
TREES = {"learning_rate": 0.1, "max_depth": 4, "num_leaves": 8, "min_sum_hessian_in_leaf": 0.0,
         "feature_fraction_bynode": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1,
         "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbose": -1}  # fmt: skip
"""LightGBM parameters. Trees are smaller than the authors' (depth 6, 30 leaves, 100 rounds) because they order HAT's
latency tables better.
"""


class BoostedRanker:
    """LightGBM with the logistic loss of all pairs, deterministic.

    Features are a gene's values in each layer, or one-hot if most choices are names; the authors' code averages over
    layers.
    """

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self.space, self.seed = space, seed
        names = sum(all(isinstance(option, str) for option in choice.options[0]) for choice in space.choices)
        self.encoding = "onehot" if 2 * names > len(space.choices) else "layers"
        self._boosters: list[Any] = []

    def fit(self, rows: Rows, values: Array) -> None:
        """Fit to architectures ``(n, slots)`` and values ``(n,)``, not all equal."""
        import lightgbm

        settings = {
            **TREES,
            "objective": pairwise_gradients(values),
            "min_data_in_leaf": min(MIN_LEAF, max(1, len(values) // 4)),
        }
        data = lightgbm.Dataset(self._features(rows), values, params={"min_data_in_bin": 1})
        self._boosters = [
            lightgbm.train({**settings, "seed": 1000 * self.seed + member}, data, ROUNDS) for member in range(MEMBERS)
        ]

    def score(self, rows: Rows) -> Array:
        features = self._features(rows)
        return np.asarray(np.mean([booster.predict(features, num_threads=1) for booster in self._boosters], 0))

    def _features(self, rows: Rows) -> Array:
        return self.space.encode_rows(rows, self.encoding).astype(np.float64)


def pairwise_gradients(values: Array) -> Callable[[Array, Any], tuple[Array, Array]]:
    """Return a LightGBM objective: mean of log(1 + exp(-(f_a - f_b))) over all pairs in which value a exceeds value b.

    Gradients and Hessian diagonal ``(n,)`` are multiplied by n.
    """
    order = np.sign(values[:, None] - values[None, :]).astype(np.float32)
    pairs = np.maximum(np.abs(order).sum(1), 1).astype(np.float64)

    def objective(scores: Array, _: Any) -> tuple[Array, Array]:
        gaps = (scores[:, None] - scores[None, :]).astype(np.float32)
        probabilities = 1 / (1 + np.exp(np.clip(order * gaps, -30, 30)))
        gradient = -(order * probabilities).sum(1, dtype=np.float64)
        curvature = (np.abs(order) * probabilities * (1 - probabilities)).sum(1, dtype=np.float64)
        return gradient / pairs, np.maximum(curvature / pairs, 1e-6)

    return objective


def tau_importance(features: Array, values: Array) -> Array:
    """Return |Kendall's tau| ``(F,)`` between features ``(n, F)`` and values ``(n,)``; 0 for constant features."""
    from scipy.stats import kendalltau  # slow to import

    taus = [
        0.0 if np.ptp(column) == 0 else abs(float(np.nan_to_num(kendalltau(column, values).statistic)))
        for column in np.asarray(features, np.float64).T
    ]
    return np.array(taus)
