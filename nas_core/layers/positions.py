"""Sinusoidal positions of a supernet's width, of which subnets read a prefix."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["SinusoidalPositions", "sinusoids"]


def sinusoids(length: int, width: int) -> Tensor:
    """``(length, width)``: sines in the first half, cosines in the second (Vaswani et al. 2017)."""
    half = width // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000.0) / max(half - 1, 1)))
    angle = torch.arange(length, dtype=torch.float)[:, None] * rate
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    return nn.functional.pad(table, (0, width - 2 * half))


class SinusoidalPositions(nn.Module):
    """A table that grows on demand. ``width`` is the supernet's, also in an extracted subnet: its channels are a prefix
    of the supernet's table, not a table of its own width."""

    table: Tensor

    def __init__(self, width: int, length: int = 256) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(length, width), persistent=False)

    def resize(self, width: int) -> None:
        """Use the table of another supernet width (when weights of another supernet are loaded)."""
        self.width = width
        self.table = sinusoids(len(self.table), width).to(self.table)

    def forward(self, length: int, features: int) -> Tensor:
        """Positions 0 to ``length - 1``, first ``features`` channels: (length, features)."""
        if length > len(self.table):
            self.table = sinusoids(max(length, 2 * len(self.table)), self.width).to(self.table)
        return self.table[:length, :features]
