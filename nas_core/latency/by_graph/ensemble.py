"""Ensemble of latency models of any network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import MIN_MS, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.nn_former import NNFormerModel
from nas_core.latency.model import Floats
from nas_core.predictor.artifact import below


@dataclass(frozen=True)
class EnsembleConfig:
    """Settings of :class:`EnsembleModel`."""

    epochs: int = 0
    """Training epochs; 0: the default of each member."""

    def __post_init__(self) -> None:
        check_fields(self, "the ensemble", {"epochs": Range(0)})


class EnsembleModel(GraphLatencyModel):
    """Geometric mean of models nn-former and graphsage, with a standard deviation from their disagreement."""

    name = "ensemble"
    reads = tuple(dict.fromkeys((*NNFormerModel.reads, *GraphSageModel.reads)))
    config_class = EnsembleConfig
    config: EnsembleConfig
    member_classes: ClassVar[tuple[type[GraphLatencyModel], ...]] = (NNFormerModel, GraphSageModel)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.members = self._new_members()

    def _new_members(self) -> tuple[GraphLatencyModel, ...]:
        changes = {"epochs": self.config.epochs} if self.config.epochs else {}
        return tuple(cls(**changes) for cls in self.member_classes)

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self.members = tuple(
            member.on(str(self.device)).fit(data, seed=seed, progress=progress) for member in self._new_members()
        )

    def move(self) -> None:
        for member in self.members:
            member.on(str(self.device))

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        logs = np.log([np.maximum(member.estimate(graphs)[0], MIN_MS) for member in self.members])
        predicted = np.asarray(np.exp(logs.mean(0)))
        return predicted, predicted * logs.std(0, ddof=1)

    def header(self) -> dict[str, Any]:
        return {**super().header(), "members": [member.header() for member in self.members]}

    def tensors(self) -> dict[str, Tensor]:
        return {
            f"{i}.{name}": tensor for i, member in enumerate(self.members) for name, tensor in member.tensors().items()
        }

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        members = enumerate(zip(self.member_classes, header["members"], strict=True))
        self.members = tuple(
            cls.restored(member_header, below(f"{i}.", tensors)) for i, (cls, member_header) in members
        )
