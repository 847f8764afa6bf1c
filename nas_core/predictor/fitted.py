"""What a fit gives, as one value: a predictor has all of it or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.predictor.artifact import below
from nas_core.predictor.mixture import Mixture
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
    mixture: Mixture | None = None
    """What decides instead of the share, where shares are learned: of the networks as one part, and of each of the
    statistics' parts"""

    def __getstate__(self) -> dict[str, Any]:
        """All but the scorers, of which a copy makes its own: recorded passes belong to one memory."""
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}

    @cached_property
    def scorers(self) -> list[Scorer]:
        given = self.recipe.train.precision
        return [Scorer(model, usable_precision(given, next(model.parameters()).device)) for model in self.models]

    def predict_with_spread(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` and, where there are several parts, their standard deviation ``(B,)``, in the units of
        the targets."""
        share = self.share
        if self.mixture is not None:
            return self.mixture.combine(self._parts(graphs), self.scale)
        rows = [scorer(graphs) for scorer in self.scorers]
        weights = [(1 - share) / len(rows) for _ in rows]
        if self.statistics is not None:
            kinds = self.statistics.predict(graphs)
            rows, weights = [*rows, *kinds], [*weights, *(share / len(kinds) for _ in kinds)]
        spread = np.stack([self.scale.restore(row) for row in rows]).std(0) if len(rows) > 1 else None
        return self.scale.restore(np.average(rows, axis=0, weights=weights)), spread

    def quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        """Quantiles ``(L, B)`` in the units of the targets, where shares and deviations were learned."""
        return (
            None if self.mixture is None else self.mixture.quantiles(self._parts(graphs), self.scale, levels.tolist())
        )

    def _parts(self, graphs: Graphs) -> Array:
        """What the networks, the processes and the trees say, ``(P, B)``."""
        rows = [scorer(graphs) for scorer in self.scorers]
        statistics = [] if self.statistics is None else list(self.statistics.predict(graphs))
        return np.stack([*([np.mean(rows, 0)] if rows else []), *statistics])

    def apart(self, graphs: Graphs) -> dict[str, Array]:
        """What each part says by itself, ``(B,)`` by name, in the units of the targets."""
        names = [*(["networks"] if self.models else []), *(() if self.statistics is None else self.statistics.parts)]
        return {name: self.scale.restore(row) for name, row in zip(names, self._parts(graphs), strict=True)}

    def mixed(self, graphs: Graphs, fold: NDArray[np.int64], held_out: Array, targets: Array) -> Fitted:
        """The same with shares and spread learned from graphs that the parts did not see.

        Args:
            graphs: the training graphs.
            fold: ``(G,)`` the fold of each; network i was not trained on fold i.
            held_out: ``(K, G)`` what statistics said of the graphs that they had not seen.
            targets: ``(G,)`` in the units of the user.
        """
        judged, parts = np.arange(len(graphs)), held_out
        prior = np.full(len(held_out), self.recipe.statistics / len(held_out))
        if self.models:
            judged = np.flatnonzero(fold < len(self.models))
            networks = np.zeros(len(graphs))
            for each, scorer in enumerate(self.scorers):
                unseen = np.flatnonzero(fold == each)
                networks[unseen] = scorer(graphs.take(unseen)) if len(unseen) else 0.0
            parts = np.concatenate([networks[None], held_out])
            prior = np.concatenate([[1 - self.recipe.statistics], prior])
        learned = self.scale.learn(targets[judged])
        mixture = Mixture.fit(parts[:, judged], learned, targets[judged], self.scale, prior.tolist())
        return replace(self, mixture=mixture, share=_share(self.recipe, mixture))

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
        counts = (recipe.members > 0) + (0 if statistics is None else len(statistics.parts))
        mixture = Mixture.from_json(header["mixture"], counts) if recipe.learns_shares else None
        share, known = float(header["share"]), recipe.statistics if mixture is None else _share(recipe, mixture)
        if not abs(share - known) <= 1e-6:
            raise DataError(f"a share of {share} of the statistics")
        return cls(recipe, models, statistics, share, TargetScale.from_json(header["scale"]), mixture)


def _share(recipe: Recipe, mixture: Mixture) -> float:
    """The share of statistics in a mixture."""
    return 1.0 - mixture.shares[0] if recipe.members else 1.0


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
