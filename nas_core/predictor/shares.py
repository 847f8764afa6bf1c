"""A readout of ours for latency: each node has milliseconds of its own.

A runtime computes a network operator by operator, so its latency is nearly a sum over nodes, also in families that no
training network belongs to. The paper's readout sums codes and lets a perceptron turn their sum into milliseconds; how
that perceptron goes on beyond the sums it was trained with is left to chance. Here each node starts with the
milliseconds that its FLOPs and memory access take on average; each kind of operation learns rates of its own, and the
encoding of a node and its surroundings gives a factor.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import GraphError, Graphs

__all__ = ["COSTS", "Shares", "average_costs", "cost_codes"]

COSTS = 3
"""FLOPs, parameters, memory access"""
LARGEST = 6.0
"""Of the logarithm of a factor: exp(-6) is an operator that the runtime leaves out."""
_FREE_MS = 1e-5
"""Least milliseconds of a node before its factor"""


class Shares(nn.Module):
    """Codes and costs of the nodes -> their milliseconds."""

    def __init__(self, dim: int, operations: int) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.zeros(operations, COSTS))
        """Logarithms of how many times the average a node, a FLOP and an element of that kind take"""
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, 1)
        self.average: Tensor
        self.register_buffer("average", torch.tensor([1e-3, 1e-7, 1e-7]))
        """Milliseconds of a node, of a FLOP and of an element that is read or written"""

    def forward(self, encoded: Tensor, ops: Tensor, costs: Tensor) -> Tensor:
        """``(B, N, C)``, ``(B, N)`` and ``(B, N, 3)`` -> milliseconds ``(B, N)``, all above 0."""
        factor = self.down(functional.relu(self.up(encoded))).squeeze(-1).float()
        counted = torch.stack([torch.ones_like(costs[..., 0]), costs[..., 0], costs[..., 2]], -1)
        prior = (counted * self.average * _factor(functional.embedding(ops, self.rates))).sum(-1)
        return prior.clamp(min=_FREE_MS) * _factor(factor)

    def start(self, graphs: Graphs, latency_ms: NDArray[np.float64]) -> None:
        """Begin with the averages of these networks, all factors 1."""
        self.average.copy_(torch.from_numpy(average_costs(graphs, latency_ms)).to(self.average))
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)


def _factor(logarithm: Tensor) -> Tensor:
    return (LARGEST * torch.tanh(logarithm.float() / LARGEST)).exp()


def average_costs(graphs: Graphs, latency_ms: NDArray[np.float64]) -> NDArray[np.float64]:
    """``(3,)`` milliseconds of a node, a FLOP and an accessed element, none below 0, with the least relative squared
    error of the sums.

    Raises:
        GraphError: the graphs have no costs.
    """
    if graphs.costs is None:
        raise GraphError("the graphs have no costs of their nodes; expected graphs that read_onnx made")
    starts = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
    sums = np.add.reduceat(graphs.costs.astype(np.float64), starts, axis=0)
    table = np.stack([graphs.sizes, sums[:, 0], sums[:, 2]], 1) / latency_ms[:, None]
    scale = np.maximum(table.mean(0), 1e-30)
    found, _ = nnls(table / scale, np.ones(len(table)))
    return np.asarray(found / scale)


def cost_codes(costs: Tensor) -> Tensor:
    """``(..., 3)`` -> logarithms of that shape, about 0 to 2."""
    return torch.log1p(costs) / 10
