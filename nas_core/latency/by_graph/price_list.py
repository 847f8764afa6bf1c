"""Latency as a sum of costs with weights that are not negative: on FLOPs, and on the costs of each kind of operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.graph import GraphError, Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats


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


class FlopsModel(CostsModel):
    """Milliseconds per GFLOP and a constant."""

    name = "flops"
    reads = ("static",)

    def _columns(self, graphs: Graphs) -> Floats:
        assert graphs.static is not None
        return graphs.static[:, [1]].astype(np.float64)


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

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self.weights = shrunk_prices(self._columns(data.graphs), data.latency_ms, self.config.shrinkage)

    def _columns(self, graphs: Graphs) -> Floats:
        return costs_by_kind(graphs)


def check_kinds(graphs: Graphs) -> None:
    """Refuse graphs whose operations are no kinds of an encoding of ONNX operators.

    Raises:
        GraphError: an operation index of no kind.
    """
    if len(graphs.ops) and int(graphs.ops.max()) >= KINDS:
        raise GraphError(f"operation index {int(graphs.ops.max())} in a graph; expected 0 to {KINDS - 1}")


def costs_by_kind(graphs: Graphs) -> Floats:
    """``(G, 3 KINDS)`` sums over the nodes of each kind of operator: how many do anything, GFLOPs, memory access in
    million elements.

    Raises:
        GraphError: an operation index of no kind.
    """
    assert graphs.costs is not None
    check_kinds(graphs)
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    place = graph * KINDS + graphs.ops
    flops, _, access = graphs.costs.astype(np.float64).T
    columns = ((flops + access > 0).astype(np.float64), flops / 1e9, access / 1e6)
    sums = [np.bincount(place, column, len(graphs) * KINDS).reshape(-1, KINDS) for column in columns]
    return np.concatenate(sums, 1)


def relative_nnls(inputs: Floats, targets: Floats) -> Floats:
    """Weights ``(F,)``, none below 0, for which ``inputs @ weights`` has the least squared relative error to targets
    ``(G,)`` above 0."""
    return _nnls(inputs / targets[:, None], np.ones(len(targets)))


def shrunk_prices(columns: Floats, targets: Floats, shrinkage: float) -> Floats:
    """Weights ``(3 KINDS + 1,)`` of :func:`costs_by_kind` ``(G, 3 KINDS)`` and of a constant, as :func:`relative_nnls`
    finds them, but each drawn to the weight that all kinds would share: a kind that few networks have, or none, costs
    what operators cost on average.

    Args:
        shrinkage: squared relative errors that a weight is worth which is off by as much as the whole of its cost.
    """
    inputs = np.hstack([columns, np.ones((len(columns), 1))])
    totals = np.hstack([columns.reshape(len(columns), 3, KINDS).sum(2), inputs[:, -1:]])
    spread = [KINDS] * 3 + [1]
    shared = np.repeat(relative_nnls(totals, targets), spread)
    size = np.repeat((totals / targets[:, None]).mean(0), spread)
    drawn = np.sqrt(shrinkage) * np.diag(size)
    return _nnls(np.vstack([inputs / targets[:, None], drawn]), np.concatenate([np.ones(len(targets)), drawn @ shared]))


def _nnls(matrix: Floats, wanted: Floats) -> Floats:
    """Non-negative least squares on columns of one length; columns of zeros get 0."""
    scale = np.sqrt((matrix**2).mean(0))
    used = scale > 0
    weights = np.zeros(matrix.shape[1])
    weights[used] = nnls(matrix[:, used] / scale[used], wanted, maxiter=100 * len(weights))[0]
    weights[used] /= scale[used]
    return weights
