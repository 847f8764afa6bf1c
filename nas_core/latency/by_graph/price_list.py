"""Latency as a sum of costs with weights that are not negative: on FLOPs, on FLOPs and memory access, and on the costs
of each kind of operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.errors import DataError
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import Floats, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.prices import costs_by_kind, relative_nnls, shrunk_prices

__all__ = ["CountsConfig", "CountsModel", "FlopsAccessModel", "FlopsModel"]


@dataclass(frozen=True)
class CountsConfig:
    """Settings of the prices of operators."""

    shrinkage: float = 1e-3
    """How strongly the prices of all kinds are drawn together; chosen on 320 networks of 13 families, of which each in
    turn was left out, in onnxruntime and in torch."""

    def __post_init__(self) -> None:
        check_fields(self, "prices of operators", {"shrinkage": Range(0)})


class CostsModel(GraphLatencyModel):
    """A sum of what a network costs, with weights from 0 on that give the least squared relative error."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.weights = np.zeros(0)
        """``(F,)``: ms per unit of each column, the constant last."""

    @abstractmethod
    def _columns(self, graphs: Graphs) -> Floats:
        """``(G, F - 1)``."""

    def _inputs(self, graphs: Graphs) -> Floats:
        return np.hstack([self._columns(graphs), np.ones((len(graphs), 1))])

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self.weights = relative_nnls(self._inputs(data.graphs), data.latency_ms)

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        return self._inputs(graphs) @ self.weights, None

    def tensors(self) -> dict[str, Tensor]:
        return {"weights": torch.from_numpy(self.weights)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.weights = tensors["weights"].numpy().astype(np.float64)
        if self.weights.shape != (self._width + 1,) or not np.isfinite(self.weights).all() or self.weights.min() < 0:
            raise DataError(f"weights of shape {self.weights.shape}, or one below 0")

    _width: int
    """Number of columns that :meth:`_columns` gives."""


class FlopsModel(CostsModel):
    """Milliseconds per GFLOP and a constant."""

    name = "flops"
    reads = ("static",)
    _width = 1

    def _columns(self, graphs: Graphs) -> Floats:
        assert graphs.static is not None
        return graphs.static[:, [1]].astype(np.float64)


class FlopsAccessModel(CostsModel):
    """Milliseconds per GFLOP, per 10 million elements of memory access, and a constant."""

    name = "flops-access"
    reads = ("static",)
    _width = 2

    def _columns(self, graphs: Graphs) -> Floats:
        assert graphs.static is not None
        return graphs.static[:, [1, 3]].astype(np.float64)


class CountsModel(CostsModel):
    """A network as the sum of its operators: each kind has milliseconds per operator, per GFLOP and per million
    elements of memory access. The simplest model of kernels that are predicted one by one, as nn-Meter does (Zhang et
    al., MobiSys 2021), without a measurement of any kernel. A kind that training networks hardly have costs about what
    all do.
    """

    name = "counts"
    reads = ("costs",)
    config_class = CountsConfig
    config: CountsConfig
    _width = 3 * KINDS

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self.weights = shrunk_prices(self._columns(data.graphs), data.latency_ms, self.config.shrinkage)

    def _columns(self, graphs: Graphs) -> Floats:
        return costs_by_kind(graphs)
