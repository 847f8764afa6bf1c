"""Gradient-boosted trees on the static features of a network, by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.prices import log_static
from nas_core.predictor.statistics.boosted_trees import BoostedTrees

__all__ = ["TreesConfig", "TreesModel"]

_RANGES = {
    "rounds": Range(1),
    "learning_rate": Range(0, 1, without=(0,)),
    "leaves": Range(2),
    "least_in_leaf": Range(1),
}


@dataclass(frozen=True)
class TreesConfig:
    """Settings of the boosting."""

    rounds: int = 400
    """Trees."""
    learning_rate: float = 0.05
    """Share of each tree that is added."""
    leaves: int = 15
    """Leaves of a tree at most."""
    least_in_leaf: int = 5
    """Networks in a leaf at least."""

    def __post_init__(self) -> None:
        check_fields(self, "boosted trees", _RANGES)


class TreesModel(GraphLatencyModel):
    """log ms from the logarithms of batch, FLOPs, parameters and memory access."""

    name = "trees"
    reads = ("static",)
    config_class = TreesConfig
    config: TreesConfig
    _trees: BoostedTrees

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        import lightgbm

        settings = {
            "objective": "l2",
            "learning_rate": self.config.learning_rate,
            "num_leaves": self.config.leaves,
            "min_data_in_leaf": self.config.least_in_leaf,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
            "seed": seed,
        }
        rows = lightgbm.Dataset(log_static(data.graphs), np.log(data.latency_ms))
        self._trees = BoostedTrees.from_text(lightgbm.train(settings, rows, self.config.rounds).model_to_string())

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        return np.exp(self._trees.predict(log_static(graphs))), None

    def tensors(self) -> dict[str, Tensor]:
        return {"trees": self._trees.to_tensor()}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._trees = BoostedTrees.from_tensor(tensors["trees"])
