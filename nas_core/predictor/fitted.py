"""What a fit gives, as one value: a predictor has all of it or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.artifact import below
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.precision import usable_precision
from nas_core.predictor.recipes import Recipe
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.targets import TargetScale

__all__ = ["Fitted"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Networks, statistics and what is needed to predict with them."""

    recipe: Recipe
    """With the sizes that the graphs needed"""
    models: tuple[NNFormer, ...]
    statistics: StatisticsModel | None
    share: float
    """Share of the statistics in the prediction."""
    scale: TargetScale

    def __getstate__(self) -> dict[str, Any]:
        """All but the scorers, of which a copy makes its own: recorded passes belong to one memory."""
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}

    @cached_property
    def scorers(self) -> list[Scorer]:
        given = self.recipe.train.precision
        return [Scorer(model, usable_precision(given, next(model.parameters()).device)) for model in self.models]

    def predict_with_spread(self, graphs: Graphs) -> tuple[Array, Array]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)``, in the units of the targets."""
        share = self.share
        rows = [scorer(graphs) for scorer in self.scorers]
        weights = [(1 - share) / len(rows) for _ in rows]
        if self.statistics is not None:
            kinds = self.statistics.predict(graphs)
            rows, weights = [*rows, *kinds], [*weights, *(share / len(kinds) for _ in kinds)]
        spread = np.stack([self.scale.restore(row) for row in rows]).std(0)
        return self.scale.restore(np.average(rows, axis=0, weights=weights)), spread

    def tensors(self) -> dict[str, Tensor]:
        """All arrays by name.

        Raises:
            DataError: a weight is no finite number.
        """
        named = {f"{i}.{name}": x for i, model in enumerate(self.models) for name, x in model.state_dict().items()}
        _require_finite(named)
        if self.statistics is not None:
            named |= {f"statistics.{name}": x for name, x in self.statistics.to_tensors().items()}
        return named

    @classmethod
    def restored(
        cls, recipe: Recipe, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> Fitted:
        """What a file's header and tensors hold of it, the inverse of :meth:`tensors`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        if recipe.members * recipe.model.depth > len(tensors):
            raise DataError(f"{len(tensors)} tensors for {recipe.members} networks of {recipe.model.depth} blocks")
        parts_of = {*map(str, range(recipe.members)), *(["statistics"] if recipe.statistics else [])}
        if foreign := {name.partition(".")[0] for name in tensors} - parts_of:
            raise DataError(f"tensors of {min(foreign)!r}, which the recipe does not have")
        models = tuple(_model(recipe, below(f"{i}.", tensors), device) for i in range(recipe.members))
        statistics = None
        if recipe.statistics:
            parts = below("statistics.", tensors)
            statistics = StatisticsModel.from_tensors(parts, recipe.processes, recipe.trees)
        graphs = int(header["info"]["graphs"])
        share = float(header.get("share", recipe.adapted(graphs).statistics))  # absent in the first files
        if not 0 <= share <= 1 or (share == 0) != (statistics is None):
            raise DataError(f"a share of {share} of the statistics")
        return cls(recipe, models, statistics, share, TargetScale.from_json(header["scale"]))


def _model(recipe: Recipe, weights: dict[str, Tensor], device: torch.device) -> NNFormer:
    _require_finite(weights)
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        model = NNFormer(recipe.model)
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval()


def _require_finite(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32 or not bool(torch.isfinite(tensor).all()):
            raise DataError(f"weight {name} of a network holds what is no finite number in float32; fit it anew")
