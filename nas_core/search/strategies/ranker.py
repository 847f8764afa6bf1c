"""Which of two architectures is better: gradient-boosted trees on their encodings.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021: searching needs the order of
architectures alone, and a classifier of pairs learns it from fewer evaluations than a regression of values. (Its
released code regresses; both are here.)
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
    """Orders architectures: a smaller score is a smaller value of what was learned."""

    def fit(self, rows: Rows, values: Array) -> None:
        """Learn from rows ``(n, slots)`` and their values ``(n,)``, from nothing whatever was fitted before."""

    def score(self, rows: Rows) -> Array:
        """``(n,)``."""


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
    """Settings of :class:`BoostedRanker`; smaller trees than in RankNAS's released code (depth 6, 30
    leaves, 100 rounds), which order HAT's latency tables better at any number of measurements.

    Raises:
        ConfigError, UnknownChoiceError: a value out of range.
    """

    objective: str = field(default=OBJECTIVES[0], metadata={"choices": OBJECTIVES})
    """pairwise: logistic loss of all pairs; regression: squared error of the values."""
    encoding: str = field(default="layers", metadata={"choices": tuple(ENCODINGS)})
    """What of an architecture is seen, see :mod:`nas_core.space.encoding`; RankNAS sees the ``summary``, means over
    layers."""
    rounds: int = 60
    """Trees."""
    learning_rate: float = 0.1
    """Weight of each tree."""
    max_depth: int = 4
    """Depth of a tree at most."""
    leaves: int = 8
    """Leaves of a tree at most."""
    min_leaf: int = 5
    """Architectures in a leaf, at least."""
    members: int = 5
    """Models averaged, each with random halves of the features in its nodes and 80 % of the architectures in its
    trees: a single small model gives many architectures one score."""

    def __post_init__(self) -> None:
        check_fields(self, "a ranker", _RANGES)


class BoostedRanker:
    """LightGBM with a pairwise logistic objective, or with its squared error. Equal data give equal trees."""

    def __init__(self, space: SearchSpace, config: RankerConfig | None = None, seed: int = 0) -> None:
        self.space, self.config, self.seed = space, config or RankerConfig(), seed
        self._boosters: list[Any] = []

    def fit(self, rows: Rows, values: Array) -> None:
        """Learn from rows ``(n, slots)`` and their values ``(n,)``.

        Raises:
            DataError: fewer than two different values.
        """
        self.fit_features(self._features(rows), values)

    def score(self, rows: Rows) -> Array:
        return self.score_features(self._features(rows))

    def fit_features(self, features: Array, values: Array) -> None:
        """From encodings ``(n, F)``, where architectures are known by them alone, as in HAT's latency tables."""
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

    def score_features(self, features: Array) -> Array:
        """``(n,)``."""
        if not self._boosters:
            raise ConfigError("this ranker was not fitted; call fit first")
        if not len(features):
            return np.zeros(0)
        seen = np.asarray(features, np.float64)
        mean: Array = np.mean([booster.predict(seen, num_threads=1) for booster in self._boosters], 0)
        return mean

    def _features(self, rows: Rows) -> Array:
        return self.space.encode_rows(rows, self.config.encoding).astype(np.float64)


def pairwise_gradients(values: Array) -> Callable[[Array, Any], tuple[Array, Array]]:
    """LightGBM's objective: the mean over all pairs with different values of log(1 + exp(-(f_a - f_b))), value a being
    the larger one; gradients and the diagonal of the Hessian ``(n,)`` times n, so that leaves see numbers near 1."""
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
    """|Kendall's tau| between each feature ``(n, F)`` and the values ``(n,)``: RankNAS's importance ``(F,)``; 0 for a
    feature that never varies."""
    from scipy.stats import kendalltau  # seconds on a slow disk, which a tuner of NNI has not got when it starts

    taus = [
        0.0 if np.ptp(column) == 0 else abs(float(np.nan_to_num(kendalltau(column, values).statistic)))
        for column in np.asarray(features, np.float64).T
    ]
    return np.array(taus)


def permutation_importance(
    ranker: Ranker,
    space: SearchSpace,
    rows: Rows,
    values: Array,
    seed: int = 0,
    repeats: int = 10,
) -> Array:
    """How many more of the pairs are ordered wrongly when one gene is shuffled between architectures ``(choices,)``.

    ``rows`` and ``values`` are held out: not what the ranker learned from.
    """
    stream = np.random.default_rng(seed)
    right = _ordered(ranker.score(rows), values)
    losses = []
    for columns in space.slots.columns:
        found = []
        for _ in range(repeats):
            shuffled = rows.copy()
            shuffled[:, columns] = rows[stream.permutation(len(rows))][:, columns]
            found.append(right - _ordered(ranker.score(_repaired(space, shuffled, rows)), values))
        losses.append(float(np.mean(found)))
    return np.array(losses)


def _repaired(space: SearchSpace, shuffled: Rows, rows: Rows) -> Rows:
    """After depths or layers moved between architectures: layers that came without options take their old ones, or the
    first, and layers that do not exist lose theirs."""
    filled = np.where(shuffled < 0, np.maximum(rows, 0), shuffled).astype(np.int16)
    return space.slots.canonical(filled)


def _ordered(scores: Array, values: Array) -> float:
    """Share of the pairs with different values that the scores order rightly; ties count half."""
    larger = values[:, None] > values[None, :]
    gaps = scores[:, None] - scores[None, :]
    return float(((gaps > 0) + 0.5 * (gaps == 0))[larger].mean()) if larger.any() else 0.5
