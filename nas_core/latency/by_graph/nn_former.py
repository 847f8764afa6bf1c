"""NN-Former as a latency model of any network: as published, and relative to a linear model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import LEAST_MS, GraphLatencyModel, Progress
from nas_core.latency.by_graph.counts import CountsConfig, costs_by_kind, shrunk_prices
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats
from nas_core.predictor.artifact import NOT_BY_ITSELF
from nas_core.predictor.base import AccuracyModel
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.recipes import get_recipe, recipe_types


class NNFormerReleasedModel(GraphLatencyModel):
    """NN-Former as published, with 10 million parameters.

    Args:
        settings: changes of the training recipe ``latency``.
    """

    name = "nn-former-released"
    artifact = NNFormerPredictor.name
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "static")
    recipe: ClassVar[str] = "latency"

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        return recipe_types()

    def __init__(self, **settings: Any) -> None:
        self.check_settings(settings)
        super().__init__()
        self.settings = settings
        self._recipe = get_recipe(self.recipe).changed(**settings)
        self._predictor = NNFormerPredictor(self._recipe, unseen="ignore")

    def described(self) -> dict[str, Any]:
        return self._recipe.to_dict()

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        predictor = NNFormerPredictor(self._recipe, seed=seed, device=str(self.device), unseen="ignore")
        self._predictor = predictor.fit(data.graphs, data.latency_ms, progress=progress)

    def move(self) -> None:
        if self._predictor.fitted:
            contents = self._predictor.contents()
            self._predictor = NNFormerPredictor.restored(*contents, device=str(self.device), unseen="ignore")

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        return self._predictor.predictions(graphs)

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        about, tensors = super().contents()
        header, _ = self._predictor.contents()
        about["settings"] = self.settings
        return {**header, "info": {**header["info"], "network_latency": about}}, tensors

    def tensors(self) -> dict[str, Tensor]:
        return self._predictor.contents()[1]

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._predictor = NNFormerPredictor.restored(header, tensors, str(self.device), unseen="ignore")


class NNFormerModel(NNFormerReleasedModel):
    """NN-Former that predicts the ratio of latency to that predicted by the model named counts.

    The ratio is close to 1 for an unseen family of known operators.
    """

    name = "nn-former"
    reads = ("attributes", "shapes", "costs", "static")
    recipe = "network-latency"
    _prices: Floats

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        prices = shrunk_prices(costs_by_kind(data.graphs), data.latency_ms, CountsConfig().shrinkage)
        factors = replace(data, latency_ms=data.latency_ms / _priced_ms(data.graphs, prices))
        super().learn(factors, seed, progress)
        self._prices = prices

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        priced_ms = _priced_ms(graphs, self._prices)
        factor, deviation = super().estimate(graphs)
        return priced_ms * factor, None if deviation is None else priced_ms * deviation

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "prices": self._prices.tolist()}

    def _restore_header(self, header: Mapping[str, Any]) -> None:
        super()._restore_header(header)
        self._prices = np.array(header["prices"], np.float64)


def _priced_ms(graphs: Graphs, prices: Floats) -> Floats:
    return np.asarray(np.maximum(costs_by_kind(graphs) @ prices[:-1] + prices[-1], LEAST_MS))


def check_unpriced(predictor: AccuracyModel, path: str | Path) -> AccuracyModel:
    """Return a predictor; raise a ConfigError if it predicts the ratios of a :class:`NNFormerModel`."""
    about = predictor.info.get("network_latency")
    if isinstance(about, dict) and "prices" in about:
        raise ConfigError(f"{path} is {NOT_BY_ITSELF}")
    return predictor
