"""NN-Former as a latency model of whole networks: ours, its ablations, and the published model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress, about_of
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.priced import Priced
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.recipes import get_recipe, recipe_types

__all__ = ["NNFormerGlobalModel", "NNFormerModel", "NNFormerReleasedModel", "NNFormerUnpricedModel"]


class NNFormerUnpricedModel(GraphLatencyModel):
    """NN-Former with a readout of ours, recipe ``network-latency``: milliseconds from the graph alone.

    Its file is that of an :class:`NNFormerPredictor`, which also opens it.

    Args:
        settings: changes of single settings of the recipe.
    """

    name = "nn-former-unpriced"
    artifact = NNFormerPredictor.name
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "costs", "static")
    recipe: ClassVar[str] = "network-latency"
    changes: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        return recipe_types()

    def __init__(self, **settings: Any) -> None:
        self.check_settings(settings)
        super().__init__()
        self.settings = settings
        self._recipe = get_recipe(self.recipe).changed(**{**self.changes, **settings})
        self._predictor = NNFormerPredictor(self._recipe, unseen="ignore")

    def described(self) -> dict[str, Any]:
        return self._recipe.to_dict()

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        predictor = NNFormerPredictor(self._recipe, seed=seed, device=str(self.device), unseen="ignore")
        self._predictor = predictor.fit(data.graphs, data.latency_ms, progress=progress)

    def facts(self) -> dict[str, Any]:
        return {"trained_on": {name: self._predictor.info[name] for name in ("device", "precision")}}

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
        if "prices" in about_of(header) and not isinstance(self, Priced):
            raise DataError("prices of operators, which this model does not have")
        self._predictor = NNFormerPredictor.restored(header, tensors, str(self.device), unseen="ignore")
        if self._predictor.known != self.known or self._predictor.recipe.name != self.recipe:
            raise DataError(f"a predictor of recipe {self._predictor.recipe.name!r}, or of other operations")


class NNFormerModel(Priced, NNFormerUnpricedModel):
    """The same network, which learns a factor on the priced operators.

    The predictor in its file gives that factor.
    """

    name = "nn-former"


class NNFormerGlobalModel(NNFormerModel):
    """All nodes attend to all: the ablation of the paper's Table 5."""

    name = "nn-former-global"
    changes = {"attention": "global"}  # noqa: RUF012 - never changed


class NNFormerReleasedModel(NNFormerUnpricedModel):
    """The published model, of 10 million parameters, recipe ``latency``."""

    name = "nn-former-released"
    reads = ("attributes", "shapes", "static")
    recipe = "latency"
