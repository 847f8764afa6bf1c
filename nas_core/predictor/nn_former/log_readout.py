"""A readout of ours for latency, for data sets of a thousand networks.

The published one turns a sum of codes, which grows with the network, and sinusoids of the static features into
milliseconds; it needs tens of thousands of networks to learn how. Here both come as logarithms and so does the output:
networks of twice the size are as far apart everywhere, and half and double are equally wrong. The structure is that of
NNLP's readout (Liu et al., ICPP 2022), behind NN-Former's blocks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import GraphError, Graphs

__all__ = ["COSTS", "LogReadout", "cost_codes", "scale_of", "standardised"]

COSTS = 3
"""FLOPs, parameters, memory access"""
_LEAST = 1e-9
"""Least value of a static feature, before its logarithm"""
_CONSTANT = 1e-3
"""Deviation of what all training networks share"""


class LogReadout(nn.Module):
    """Codes of the nodes and static features of the network -> milliseconds."""

    def __init__(self, dim: int, static: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.static = nn.Linear(static, dim) if static else None
        self.hidden = nn.Linear((3 if static else 2) * dim, dim)
        self.head = nn.Linear(dim, 1)
        self.scale: Tensor
        self.register_buffer("scale", torch.tensor([[0.0, 1.0]] * (static + 1)))
        """``(F + 1, 2)`` mean and deviation of the static features' logarithms, and of ln ms"""

    def node_codes(self, encoded: Tensor) -> Tensor:
        """``(B, N, C)`` -> ``(B, N, 2 C)`` of length 1, to be summed over the nodes: none outweighs the others."""
        return functional.normalize(functional.relu(self.up(encoded)).float(), dim=-1)

    def forward(self, total: Tensor, static: Tensor | None) -> Tensor:
        """``(B, 2 C)`` sums and ``(B, F)`` -> ``(B,)``."""
        codes = [torch.log1p(total)]
        if self.static is not None and static is not None:
            known = standardised(static.clamp(min=_LEAST).log(), self.scale[:-1])
            codes.append(functional.relu(self.static(known)))
        mean, deviation = self.scale[-1]
        output = self.head(functional.relu(self.hidden(torch.cat(codes, -1)))).squeeze(-1).float()
        milliseconds: Tensor = (output * deviation + mean).exp()
        return milliseconds

    def start(self, graphs: Graphs, latency_ms: Tensor) -> None:
        """Take the scale of these networks.

        Raises:
            GraphError: the graphs have other static features.
        """
        columns = [] if graphs.static is None else list(torch.from_numpy(graphs.static.copy()).unbind(1))
        if len(columns) + 1 != len(self.scale):
            raise GraphError(f"graphs have {len(columns)} static; this model reads {len(self.scale) - 1} of them")
        logarithms = torch.stack([*(x.clamp(min=_LEAST).log() for x in columns), latency_ms.float().log()])
        self.scale.copy_(scale_of(logarithms))


def scale_of(values: Tensor) -> Tensor:
    """``(F, G)`` -> ``(F, 2)`` mean and deviation over networks."""
    return torch.stack([values.mean(1), values.std(1).clamp(min=_CONSTANT)], 1)


def standardised(values: Tensor, scale: Tensor) -> Tensor:
    """``(B, F)`` by a scale ``(F, 2)``. A feature that all training networks share is 0 whatever it is: weights of it
    learned nothing, and a batch of 4 after batches of 1 would be a thousand deviations off."""
    mean, deviation = scale.unbind(1)
    return torch.where(deviation > _CONSTANT, (values - mean) / deviation, 0.0)


def cost_codes(costs: Tensor) -> Tensor:
    """``(..., 3)`` -> logarithms of that shape, about 0 to 2."""
    return torch.log1p(costs) / 10
