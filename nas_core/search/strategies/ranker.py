"""Pairwise ranking of architectures by gradient-boosted trees on encodings.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021. The paper's released code is
a regression, also available here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, DataError
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows
from nas_core.space.space import ENCODINGS

Array = NDArray[np.float64]
OBJECTIVES = ("pairwise", "regression")


class Ranker(Protocol):
    """Model that orders architectures, smaller scores first."""

    def fit(self, rows: Rows, values: Array) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)`` anew."""

    def score(self, rows: Rows) -> Array:
        """Return scores ``(n,)``."""


_RANGES = {
    "rounds": Range(1),
    "learning_rate": Range(0, 1, without=(0,)),
    "max_depth": Range(1),
    "leaves": Range(2),
    "min_leaf": Range(1),
    "members": Range(1),
}


@dataclass(frozen=True, kw_only=True)
class RankerConfig:
    """Settings of :class:`BoostedRanker`.

    Trees are smaller than in RankNAS's released code (depth 6, 30 leaves, 100 rounds): they order HAT's latency tables
    better.
    """

    objective: str = field(default=OBJECTIVES[0], metadata={"choices": OBJECTIVES})
    """pairwise: logistic loss of all pairs; regression: squared error of the values."""
    encoding: str = field(default="layers", metadata={"choices": tuple(ENCODINGS)})
    """Encoding of architectures, see :mod:`nas_core.space.encoding`; RankNAS uses the ``summary``."""
    rounds: int = 60
    """Number of trees."""
    learning_rate: float = 0.1
    """Weight of each tree."""
    max_depth: int = 4
    """Largest depth of a tree."""
    leaves: int = 8
    """Largest number of leaves of a tree."""
    min_leaf: int = 5
    """Smallest number of architectures in a leaf."""
    members: int = 5
    """Number of averaged models, each with random halves of the features per node and 80 % of the architectures per
    tree."""

    def __post_init__(self) -> None:
        check_fields(self, "a ranker", _RANGES)


class BoostedRanker:
    """LightGBM with a pairwise logistic or squared error objective, deterministic."""

    def __init__(self, space: SearchSpace, config: RankerConfig | None = None, seed: int = 0) -> None:
        self.space, self.config, self.seed = space, config or RankerConfig(), seed
        self._boosters: list[Any] = []

    def fit(self, rows: Rows, values: Array) -> None:
        """Fit rows ``(n, slots)`` and values ``(n,)``.

        Raises:
            DataError: there are fewer than two different values.
        """
        self.fit_features(self.space.encode_rows(rows, self.config.encoding), values)

    def score(self, rows: Rows) -> Array:
        return self.score_features(self.space.encode_rows(rows, self.config.encoding))

    def fit_features(self, features: NDArray[np.floating], values: Array) -> None:
        """Fit encodings ``(n, F)`` and values ``(n,)``."""
        import lightgbm

        values = np.asarray(values, np.float64)
        if len(np.unique(values)) < 2:
            raise DataError(f"{len(values)} architectures without different values; a ranker needs at least two")
        config = self.config
        pairwise = config.objective == "pairwise"
        settings = {
            "objective": pairwise_gradients(values) if pairwise else "l2",
            "learning_rate": config.learning_rate,
            "max_depth": config.max_depth,
            "num_leaves": config.leaves,
            "min_data_in_leaf": min(config.min_leaf, max(1, len(values) // 4)),
            "min_sum_hessian_in_leaf": 0.0,
            "feature_fraction_bynode": 0.5 if config.members > 1 else 1.0,
            "bagging_fraction": 0.8 if config.members > 1 else 1.0,
            "bagging_freq": 1 if config.members > 1 else 0,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }
        data = lightgbm.Dataset(np.asarray(features, np.float64), values, params={"min_data_in_bin": 1})
        self._boosters = [
            lightgbm.train({**settings, "seed": 1000 * self.seed + member}, data, config.rounds)
            for member in range(config.members)
        ]

    def score_features(self, features: NDArray[np.floating]) -> Array:
        """Return scores ``(n,)`` of encodings ``(n, F)``."""
        if not self._boosters:
            raise ConfigError("this ranker was not fitted; call fit first")
        if not len(features):
            return np.zeros(0)
        features = np.asarray(features, np.float64)
        return np.asarray(np.mean([booster.predict(features, num_threads=1) for booster in self._boosters], 0))


def pairwise_gradients(values: Array) -> Callable[[Array, Any], tuple[Array, Array]]:
    """Return LightGBM's objective for the mean of log(1 + exp(-(f_a - f_b))) over all pairs with value a above value b.

    Gradients and Hessian diagonal ``(n,)`` are multiplied by n.
    """
    order = np.sign(values[:, None] - values[None, :]).astype(np.float32)
    pairs = np.maximum(np.abs(order).sum(1), 1).astype(np.float64)

    def objective(scores: Array, _: Any) -> tuple[Array, Array]:
        gaps = (scores[:, None] - scores[None, :]).astype(np.float32)
        wrong = 1 / (1 + np.exp(np.clip(order * gaps, -30, 30)))
        gradient = -(order * wrong).sum(1, dtype=np.float64)
        curvature = (np.abs(order) * wrong * (1 - wrong)).sum(1, dtype=np.float64)
        return gradient / pairs, np.maximum(curvature / pairs, 1e-6)

    return objective


def tau_importance(features: Array, values: Array) -> Array:
    """Return |Kendall's tau| ``(F,)`` of features ``(n, F)`` with values ``(n,)``, 0 for constant features."""
    from scipy.stats import kendalltau  # slow to import

    taus = [
        0.0 if np.ptp(column) == 0 else abs(float(np.nan_to_num(kendalltau(column, values).statistic)))
        for column in np.asarray(features, np.float64).T
    ]
    return np.array(taus)
