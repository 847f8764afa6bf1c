"""NN-Former as what orders architectures in RankNAS: it sees each network as a graph, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.device import pinned_threads
from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, Graphs
from nas_core.models.kind import ModelKind, fitting_kind
from nas_core.predictor.acquisition import log_expected_improvement
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
"""Small enough to be learned anew from a hundred architectures in seconds on a CPU; larger ones order HAT's latency
tables no better. The logistic loss of all pairs is RankNAS's; targets by rank make the values' scale irrelevant."""

THREADS = 1
"""Threads of torch: matrices this small gain nothing from more, and the order of a ranking must not depend on their
number, or an interrupted search could not be continued on another machine."""


class GraphRanker:
    """The part of a :class:`nas_core.search.Ranker` that reads the architectures of a space as graphs and learns them.

    Args:
        space: of a known kind of network, which says how its architectures are graphs.
        predictor: what learns, anew in each :meth:`fit`.

    Raises:
        ConfigError: the space is of no known kind.
    """

    def __init__(self, space: SearchSpace, predictor: NNFormerPredictor) -> None:
        self.space, self.predictor = space, predictor
        self._read: Callable[[Architecture], Graph] = _kind_of(space).graph

    def fit(self, rows: Rows, values: NDArray[np.float64]) -> None:
        """Fit the ranker to architectures and the values they got.

        Raises:
            DataError: fewer than two different values.
        """
        if len(np.unique(values)) < 2:
            raise DataError(f"{len(values)} architectures without different values; a ranker needs at least two")
        with pinned_threads(THREADS):
            self.predictor.fit(self._graphs(rows), values)

    def predictions(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Predicted values ``(n,)`` of architectures, and their standard deviation where the predictor has one.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        if not self.predictor.fitted:
            raise ConfigError("this ranker was not fitted; call fit first")
        with pinned_threads(THREADS):
            return self.predictor.predictions(self._graphs(rows))

    def _graphs(self, rows: Rows) -> Graphs:
        return Graphs.of([self._read(architecture) for architecture in self.space.architectures(rows)])


class NNFormerRanker(GraphRanker):
    """Satisfies :class:`nas_core.search.Ranker`: a smaller score is a smaller value of what was learned. Equal data and
    seeds give equal rankings on one machine.

    Args:
        space: of a known kind of network, which says how its architectures are graphs.
        seed: of weights and batches.
        recipe: how the predictor is made and trained.

    Raises:
        ConfigError: the space is of no known kind.
    """

    def __init__(self, space: SearchSpace, seed: int = 0, recipe: Recipe = RANKING) -> None:
        kind = _kind_of(space)
        # No network of the space may be too large or too strange for what was learned from a few of them.
        most, operations = len(kind.graph(space.largest())) + 1, kind.operations_of(space)
        super().__init__(
            space, NNFormerPredictor(recipe, seed=seed, unseen="ignore", max_nodes=most, operations=operations)
        )

    def score(self, rows: Rows) -> NDArray[np.float64]:
        return self.predictions(rows)[0]


def check_readable(space: SearchSpace) -> None:
    """Refuse a space whose architectures cannot be made graphs.

    Raises:
        ConfigError: the space is of no known kind.
    """
    _kind_of(space)


def _kind_of(space: SearchSpace) -> ModelKind:
    kind = fitting_kind(space)
    if kind is None:
        raise ConfigError(
            f"no graph reader takes architectures of space {space.name!r}, which is of no known kind of network; use a"
            " ranker of boosted trees"
        )
    return kind


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
