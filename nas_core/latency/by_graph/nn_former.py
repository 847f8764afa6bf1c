"""NN-Former as a latency model of any network, relative to a linear model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress
from nas_core.latency.by_graph.counts import CountsConfig, costs_by_kind, fit_prices, predict_ms
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.recipes import get_recipe, recipe_types


class NNFormerModel(GraphLatencyModel):
    """NN-Former that predicts the ratio of latency to that predicted by the model named counts.

    The ratio is close to 1 for an unseen family of known operators.

    Args:
        settings: changes of the training recipe ``network-latency``.
    """

    name = "nn-former"
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "costs", "static")
    _prices: Floats

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        return recipe_types()

    def __init__(self, **settings: Any) -> None:
        self.check_settings(settings)
        super().__init__()
        self.settings = settings
        self.recipe = get_recipe("network-latency").with_changes(**settings)
        self._predictor = NNFormerPredictor(self.recipe, unseen="ignore")

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        prices = fit_prices(costs_by_kind(data.graphs), data.latency_ms, CountsConfig().shrinkage)
        ratios = data.latency_ms / predict_ms(data.graphs, prices)
        predictor = NNFormerPredictor(self.recipe, seed=seed, device=str(self.device), unseen="ignore")
        self._predictor, self._prices = predictor.fit(data.graphs, ratios, progress=progress), prices

    def move(self) -> None:
        if self._predictor.fitted:
            contents = self._predictor.contents()
            self._predictor = NNFormerPredictor.restored(*contents, device=str(self.device), unseen="ignore")

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        linear_ms = predict_ms(graphs, self._prices)
        ratio, deviation = self._predictor.predictions(graphs)
        return linear_ms * ratio, None if deviation is None else linear_ms * deviation

    def header(self) -> dict[str, Any]:
        predictor = {"settings": self.settings, "predictor": self._predictor.contents()[0]}
        return {**super().header(), **predictor, "prices": self._prices.tolist()}

    def tensors(self) -> dict[str, Tensor]:
        return self._predictor.contents()[1]

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._prices = np.array(header["prices"], np.float64)
        self._predictor = NNFormerPredictor.restored(header["predictor"], tensors, str(self.device), unseen="ignore")
