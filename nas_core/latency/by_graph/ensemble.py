"""Several latency models of whole networks as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graphs
from nas_core.latency.by_graph.base import LEAST_MS, Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.nn_former import NNFormerModel
from nas_core.latency.by_graph.registry import register_network_model, restored_network_model
from nas_core.predictor.artifact import below

__all__ = ["EnsembleConfig", "EnsembleModel"]


@dataclass(frozen=True)
class EnsembleConfig:
    """Of all members."""

    epochs: int = 0
    """Passes over the networks; 0: as many as each member has by itself."""

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise ConfigError(f"epochs are {self.epochs}; expected at least 1, or 0 for each member's own number")


@register_network_model
class EnsembleModel(GraphLatencyModel):
    """The geometric mean of NN-Former on prices and GraphSAGE, each trained by itself.

    They fail on different families: one carries prices of operators over to a family that was never seen, the other
    knows no prices. Where they disagree, the spread is wide.
    """

    kind = "ensemble"
    reads = tuple(dict.fromkeys((*NNFormerModel.reads, *GraphSageModel.reads)))
    config_class = EnsembleConfig
    config: EnsembleConfig
    member_classes: ClassVar[tuple[type[GraphLatencyModel], ...]] = (NNFormerModel, GraphSageModel)

    def __init__(self, **settings: Any) -> None:
        if unknown := set(settings) - {"epochs"}:
            members = " or ".join(repr(cls.kind) for cls in self.member_classes)
            raise ConfigError(
                f"latency model {self.kind!r} has no setting {', '.join(sorted(unknown))}; it has: epochs. Others are"
                f" settings of one model: choose {members}"
            )
        super().__init__(**settings)
        self.members = self._new_members()

    def _new_members(self) -> tuple[GraphLatencyModel, ...]:
        changes = {"epochs": self.config.epochs} if self.config.epochs else {}
        return tuple(cls(**changes) for cls in self.member_classes)

    def described(self) -> dict[str, Any]:
        return {**super().described(), "members": {member.kind: member.described() for member in self.members}}

    def fit(self, data: NetworkLatencies, *, seed: int = 0, progress: Progress | None = None) -> Self:
        self.members = tuple(member.fit(data, seed=seed, progress=progress) for member in self._new_members())
        return super().fit(data, seed=seed)

    def _fit(self, graphs: Graphs, latency_ms: Floats, seed: int, progress: Progress | None) -> None:
        """The members have learned."""

    def _predict(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        logs = np.log([np.maximum(member._predict(graphs)[0], LEAST_MS) for member in self.members])
        predicted: Floats = np.exp(logs.mean(0))
        return predicted, predicted * logs.std(0, ddof=1)

    def _check(self, graphs: Graphs) -> None:
        super()._check(graphs)
        for member in self.members:
            member._check(graphs)

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "members": [member.contents()[0] for member in self.members]}

    def _tensors(self) -> dict[str, Tensor]:
        return {
            f"{i}.{name}": tensor
            for i, member in enumerate(self.members)
            for name, tensor in member.contents()[1].items()
        }

    def _restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        headers = header["members"]
        prefixes = [f"{i}." for i in range(len(headers))]
        if foreign := [name for name in tensors if not name.startswith(tuple(prefixes))]:
            raise DataError(f"tensor {min(foreign)!r}, which no member has")
        members = zip(headers, prefixes, strict=True)
        self.members = tuple(restored_network_model(own, below(prefix, tensors)) for own, prefix in members)
        if [type(member) for member in self.members] != list(self.member_classes):
            raise DataError(f"members {', '.join(member.kind for member in self.members)}")
        if any(member.known != self.known for member in self.members):
            raise DataError("members that know other operations")
