"""Latency model that is linear in the costs of each type of operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from nas_core.checks import Range, check_fields
from nas_core.graph import Graphs
from nas_core.graph.onnx.operators import KINDS
from nas_core.latency.by_graph.base import MIN_MS, GraphLatencyModel, Progress
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.model import Floats


@dataclass(frozen=True)
class CountsConfig:
    """Settings of :class:`CountsModel`."""

    shrinkage: float = 1e-3  # chosen on 320 networks of 13 families, each held out in turn, in onnxruntime and in torch
    """Strength of the shrinkage of the times of each operator type to their average."""

    def __post_init__(self) -> None:
        check_fields(self, "prices of operators", {"shrinkage": Range(0)})


class CountsModel(GraphLatencyModel):
    """Sum over operators; each operator type has a time per operator, GFLOP and memory access.

    A rare operator type costs about the average of all types.
    """

    name = "counts"
    reads: ClassVar[tuple[str, ...]] = ("costs",)
    config_class = CountsConfig
    config: CountsConfig
    prices: Floats
    """Result of :func:`fit_prices`."""

    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        self.prices = fit_prices(costs_by_kind(data.graphs), data.latency_ms, self.config.shrinkage)

    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        return predict_ms(graphs, self.prices), None

    def tensors(self) -> dict[str, Tensor]:
        return {"weights": torch.from_numpy(self.prices)}

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self.prices = tensors["weights"].numpy().astype(np.float64)


def costs_by_kind(graphs: Graphs) -> Floats:
    """Return costs summed by operator type ``(G, 3 KINDS)``: count, GFLOPs, million elements of memory access."""
    assert graphs.costs is not None
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    index = graph * KINDS + graphs.ops
    flops, _, access = graphs.costs.astype(np.float64).T
    columns = ((flops + access > 0).astype(np.float64), flops / 1e9, access / 1e6)
    sums = [np.bincount(index, column, len(graphs) * KINDS).reshape(-1, KINDS) for column in columns]
    return np.concatenate(sums, 1)


def fit_prices(columns: Floats, targets: Floats, shrinkage: float) -> Floats:
    """Fit non-negative ms per unit of cost, shrunk to the average of all operator types, by squared relative error.

    Args:
        columns: costs ``(G, 3 KINDS)`` of :func:`costs_by_kind`.
        targets: latencies in ms ``(G,)``.

    Returns:
        ``(3 KINDS + 1,)`` ms per unit of each cost, then the constant in ms.
    """
    inputs = np.hstack([columns, np.ones((len(columns), 1))])
    totals = np.hstack([columns.reshape(len(columns), 3, KINDS).sum(2), inputs[:, -1:]])
    counts = [KINDS] * 3 + [1]
    average = np.repeat(_nnls(totals / targets[:, None], np.ones(len(targets))), counts)
    size = np.repeat((totals / targets[:, None]).mean(0), counts)
    penalty = np.sqrt(shrinkage) * np.diag(size)
    return _nnls(
        np.vstack([inputs / targets[:, None], penalty]), np.concatenate([np.ones(len(targets)), penalty @ average])
    )


def predict_ms(graphs: Graphs, prices: Floats) -> Floats:
    """Return latencies in ms ``(G,)`` for the result of :func:`fit_prices`."""
    return np.asarray(np.maximum(costs_by_kind(graphs) @ prices[:-1] + prices[-1], MIN_MS))


def _nnls(matrix: Floats, target: Floats) -> Floats:
    scale = np.sqrt((matrix**2).mean(0))
    nonzero = scale > 0
    weights = np.zeros(matrix.shape[1])
    weights[nonzero] = nnls(matrix[:, nonzero] / scale[nonzero], target, maxiter=100 * len(weights))[0]
    weights[nonzero] /= scale[nonzero]
    return weights
