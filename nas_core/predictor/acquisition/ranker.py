"""Architectures ordered by expected improvement: what a predictor says and how sure it is, in RankNAS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.predictor.acquisition.improvement import log_expected_improvement
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.ranker import GraphRanker
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

__all__ = ["ImprovementRanker"]

SETTINGS: dict[str, Any] = {"recipe": "statistics", "processes": 4, "trees": 4}
"""Graph statistics, whose spread graphs left out have judged; in fewer parts, since each ranking learns them anew."""


class ImprovementRanker(GraphRanker):
    """Satisfies :class:`nas_core.search.Ranker`: a smaller score is a larger expected improvement over the smallest
    value that was learned. Architectures that the predictor knows little about rank higher than their prediction.

    Args:
        space: of a known kind of network, which says how its architectures are graphs.
        seed: of what is drawn.
        settings: of :class:`nas_core.predictor.NNFormerPredictor`; the recipe has to have a spread.

    Raises:
        ConfigError: the space is of no known kind, or the predictor has no spread.
    """

    def __init__(self, space: SearchSpace, seed: int = 0, **settings: Any) -> None:
        predictor = NNFormerPredictor(seed=seed, unseen="ignore", **{**SETTINGS, **settings})
        super().__init__(space, predictor)
        predictor.require_spread()
        self._best = np.inf

    def fit(self, rows: Rows, values: NDArray[np.float64]) -> None:
        super().fit(rows, values)
        self._best = float(np.min(values))

    def score(self, rows: Rows) -> NDArray[np.float64]:
        mean, spread = self.predictions(rows)
        assert spread is not None, "a predictor that was found to have one"
        return -log_expected_improvement(mean, spread, self._best, maximize=False)
