"""Architectures ordered by expected improvement: what a predictor says and how sure it is, in RankNAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.device import pinned_threads
from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, Graphs
from nas_core.models.kind import fitting_kind
from nas_core.predictor.acquisition.improvement import log_expected_improvement
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.ranker import THREADS, check_readable
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

__all__ = ["ImprovementRanker"]

SETTINGS: dict[str, Any] = {"recipe": "statistics", "processes": 4, "trees": 4}
"""Graph statistics, whose spread graphs left out have judged; in fewer parts, since each ranking learns them anew."""


class ImprovementRanker:
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
        check_readable(space)
        kind = fitting_kind(space)
        assert kind is not None
        self.space = space
        self._read: Callable[[Architecture], Graph] = kind.graph
        self._predictor = NNFormerPredictor(seed=seed, unseen="ignore", **{**SETTINGS, **settings})
        self._predictor.require_spread()
        self._best = np.inf

    def fit(self, rows: Rows, values: NDArray[np.float64]) -> None:
        """Fit the predictor to architectures and the values they got.

        Raises:
            DataError: fewer than two different values.
        """
        if len(np.unique(values)) < 2:
            raise DataError(f"{len(values)} architectures without different values; a ranker needs at least two")
        with pinned_threads(THREADS):
            self._predictor.fit(self._graphs(rows), values)
        self._best = float(np.min(values))

    def score(self, rows: Rows) -> NDArray[np.float64]:
        if not self._predictor.fitted:
            raise ConfigError("this ranker was not fitted; call fit first")
        with pinned_threads(THREADS):
            mean, spread = self._predictor.predict_with_spread(self._graphs(rows))
        return -log_expected_improvement(mean, spread, self._best, maximize=False)

    def _graphs(self, rows: Rows) -> Graphs:
        return Graphs.of([self._read(architecture) for architecture in self.space.architectures(rows)])
