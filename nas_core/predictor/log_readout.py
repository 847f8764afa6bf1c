"""A readout of ours for latency: each node has milliseconds of its own.

A runtime computes a network operator by operator, so its latency is nearly a sum over nodes, also in families that no
training network belongs to. The paper's readout sums codes and lets a perceptron turn their sum into milliseconds; how
that perceptron goes on beyond the sums it was trained with is left to chance. Here each node starts with the prices of
its kind of operator in a regression (:func:`nas_core.predictor.costs.shrunk_prices`); training adjusts them, and the
encoding of a node and its surroundings gives a factor.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import GraphError, Graphs
from nas_core.predictor.costs import KINDS, costs_by_kind, shrunk_prices

__all__ = ["COSTS", "Shares", "cost_codes"]

COSTS = 3
"""FLOPs, parameters, memory access"""
LARGEST = 4.0
"""Of the logarithm of a factor: exp(-4) is an operator that the runtime hardly does."""
SHRINKAGE = 1e-3
"""Of the prices, as that of the model ``counts``"""
_LEAST = 0.1
"""Least price of a kind, as a share of what all kinds cost on average: training cannot raise 0."""
_FREE_MS = 1e-5
"""Of a node without costs, and the least of any before its factor"""


class Shares(nn.Module):
    """Codes and costs of the nodes -> their milliseconds."""

    def __init__(self, dim: int, operations: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, 1)
        self.rates = nn.Parameter(torch.zeros(operations, COSTS))
        """Logarithms of what the prices are multiplied by"""
        self.prices: Tensor
        self.register_buffer("prices", torch.full((operations, COSTS), 1e-3))
        """Of each kind: milliseconds of an operator, of 1e9 FLOPs and of 1e6 elements that are read or written"""

    def forward(self, encoded: Tensor, ops: Tensor, costs: Tensor) -> Tensor:
        """``(B, N, C)``, ``(B, N)`` and ``(B, N, 3)`` -> milliseconds ``(B, N)``, all above 0."""
        factor = self.down(functional.relu(self.up(encoded))).squeeze(-1)
        price = functional.embedding(ops, self.prices * _factor(self.rates))
        flops, access = costs[..., 0] / 1e9, costs[..., 2] / 1e6
        counted = torch.stack([(flops + access > 0).to(flops.dtype), flops, access], -1)
        return (counted * price).sum(-1).clamp(min=_FREE_MS) * _factor(factor)

    def start(self, graphs: Graphs, latency_ms: NDArray[np.float64]) -> None:
        """Begin with the prices that these networks tell, all factors 1.

        Raises:
            GraphError: the graphs have no costs, or an operation index from 32 on.
        """
        if graphs.costs is None:
            raise GraphError("the graphs have no costs of their nodes; expected graphs that read_onnx made")
        found = shrunk_prices(costs_by_kind(graphs), latency_ms, SHRINKAGE)[:-1].reshape(COSTS, KINDS).T
        least = _LEAST * np.maximum(found.mean(0), 1e-6)
        self.prices[:KINDS].copy_(torch.from_numpy(np.maximum(found, least)).to(self.prices))
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)


def _factor(logarithm: Tensor) -> Tensor:
    return (LARGEST * torch.tanh(logarithm.float() / LARGEST)).exp()


def cost_codes(costs: Tensor) -> Tensor:
    """``(..., 3)`` -> logarithms of that shape, about 0 to 2."""
    return torch.log1p(costs) / 10
