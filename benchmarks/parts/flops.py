"""Baseline of latency models: proportional to FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.latency import LATENCY_MODELS
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.nn_former import NNFormerModel
from nas_core.latency.model import Floats


class FlopsModel(GraphLatencyModel):
    """Linear function of FLOPs: a time per GFLOP, and a constant."""

    name = "flops"
    reads = ("static",)
    _weights: Floats

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self._weights = nnls(_inputs(data.graphs) / data.latency_ms[:, None], np.ones(len(data)))[0]

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        return _inputs(graphs) @ self._weights, None

    def tensors(self) -> dict[str, Tensor]:
        return {"weights": torch.from_numpy(self._weights)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._weights = tensors["weights"].numpy()


def _inputs(graphs: Graphs) -> Floats:
    assert graphs.static is not None
    return np.column_stack([graphs.static[:, 1], np.ones(len(graphs))])


LATENCY_MODELS.register(FlopsModel.name, FlopsModel)


def describe_settings(model: GraphLatencyModel) -> dict[str, Any]:
    """Return all settings of a model and of the members of an ensemble, defaults included."""
    settings = model.recipe.to_dict() if isinstance(model, NNFormerModel) else asdict(model.config)
    return {**settings, "members": [describe_settings(member) for member in getattr(model, "members", ())]}
