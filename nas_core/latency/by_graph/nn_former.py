"""NN-Former as a latency model of whole networks: ours, its ablations, and the published model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress, about_of
from nas_core.latency.by_graph.priced import Priced
from nas_core.latency.by_graph.registry import register_network_model
from nas_core.predictor.estimator import KIND as PREDICTOR
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.recipes import get_recipe

__all__ = ["NNFormerGlobalModel", "NNFormerModel", "NNFormerReleasedModel", "NNFormerUnpricedModel"]


@register_network_model
class NNFormerUnpricedModel(GraphLatencyModel):
    """NN-Former with a readout of ours, recipe ``network-latency``: milliseconds from the graph alone.

    Its file is that of an :class:`NNFormerPredictor`, which also opens it.

    Args:
        settings: changes of single settings of the recipe.
    """

    kind = "nn-former-unpriced"
    artifact = PREDICTOR
    reads: ClassVar[tuple[str, ...]] = ("attributes", "shapes", "costs", "static")
    recipe: ClassVar[str | None] = "network-latency"
    changes: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings
        self._recipe = get_recipe(str(self.recipe)).changed(**{**self.changes, **settings})
        self._predictor = NNFormerPredictor(self._recipe, unseen="ignore")

    def described(self) -> dict[str, Any]:
        return self._recipe.to_dict()

    def _fit(self, graphs: Graphs, latency_ms: Floats, seed: int, progress: Progress | None) -> None:
        self._predictor = NNFormerPredictor(self._recipe, seed=seed, unseen="ignore")
        self._predictor.fit(graphs, latency_ms, progress=progress)

    def _predict(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        predicted, spread = self._predictor.predict_with_spread(graphs)
        return predicted, spread if self._recipe.members > 1 else None

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        about, tensors = super().contents()
        header, _ = self._predictor.contents()
        about["settings"] = self.settings
        return {**header, "info": {**header["info"], "network_latency": about}}, tensors

    def _tensors(self) -> dict[str, Tensor]:
        return self._predictor.contents()[1]

    def _restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        if "prices" in about_of(header) and not isinstance(self, Priced):
            raise DataError("prices of operators, which this kind does not have")
        self._predictor = NNFormerPredictor.restored(header, tensors, unseen="ignore")
        if self._predictor.known != self.known or self._predictor.recipe.name != self.recipe:
            raise DataError(f"a predictor of recipe {self._predictor.recipe.name!r}, or of other operations")


@register_network_model
class NNFormerModel(Priced, NNFormerUnpricedModel):
    """The same network, which learns a factor on the priced operators.

    The predictor in its file gives that factor.
    """

    kind = "nn-former"


@register_network_model
class NNFormerGlobalModel(NNFormerModel):
    """All nodes attend to all: the ablation of the paper's Table 5."""

    kind = "nn-former-global"
    changes = {"attention": "global"}  # noqa: RUF012 - never changed


@register_network_model
class NNFormerReleasedModel(NNFormerUnpricedModel):
    """The published model, of 10 million parameters, recipe ``latency``."""

    kind = "nn-former-released"
    reads = ("attributes", "shapes", "static")
    recipe = "latency"
