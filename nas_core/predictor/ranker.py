"""Ranker of architectures by their graphs with NN-Former, for strategy RankNAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.device import pinned_threads
from nas_core.errors import ConfigError
from nas_core.graph import Graph, Graphs
from nas_core.models.kind import ModelKind, fitting_kind
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.recipes import Recipe
from nas_core.predictor.training import TrainConfig
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

RANKING = Recipe(
    "ranking",
    NNFormerConfig(dim=32, depth=2, dropout=0.0),
    TrainConfig(
        epochs=60, batch_size=16, lr=2e-3, rank_weight=0.0, pair_weight=1.0, pair_temperature=0.5,
        consistency_weight=0.0, ema=0.0, equal_sizes=False, precision="fp32",
    ),
    targets="normal",
)  # fmt: skip
"""Recipe of a small network, which trains on a hundred architectures in seconds on a CPU, with RankNAS's loss."""
# Larger networks rank HAT's latency tables no better. Targets by rank remove the scale of the values.

# number of torch threads; rankings depend on it, and must be equal when a search resumes on another machine
THREADS = 1


class NNFormerRanker:
    """Ranker that scores architectures by their predicted value; a smaller score is better.

    See :class:`nas_core.search.strategies.ranker.Ranker`.
    """

    def __init__(self, space: SearchSpace, seed: int = 0, recipe: Recipe = RANKING) -> None:
        kind = check_readable(space)
        self.space = space
        self._read: Callable[[Architecture], Graph] = kind.graph
        # Sizes for all networks of the space, not only for those of the fit.
        sizes: dict[str, Any] = {
            "max_nodes": len(kind.graph(space.largest())) + 1,
            "operations": kind.operations_of(space),
        }
        self.predictor = NNFormerPredictor(recipe, seed=seed, unseen="ignore", **sizes)

    def fit(self, rows: Rows, values: NDArray[np.float64]) -> None:
        """Fit the predictor to values ``(n,)`` of architectures ``(n, slots)``."""
        with pinned_threads(THREADS):
            self.predictor.fit(self._graphs(rows), values)

    def score(self, rows: Rows) -> NDArray[np.float64]:
        with pinned_threads(THREADS):
            return self.predictor.predict(self._graphs(rows))

    def _graphs(self, rows: Rows) -> Graphs:
        return Graphs.of([self._read(architecture) for architecture in self.space.architectures(rows)])


def check_readable(space: SearchSpace) -> ModelKind:
    """Return the type of network of a search space; raise a ConfigError if there is none."""
    kind = fitting_kind(space)
    if kind is None:
        raise ConfigError(
            f"no registered type of network has space {space.name!r}, so its architectures cannot be read as graphs;"
            " give ranker gaussian-process or boosted, which use genes"
        )
    return kind
