"""Position embeddings of a supernet's width, of which subnets read a prefix."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice

POSITIONS = ("sinusoidal", "learned", "stored")
"""Sinusoids of any length; a trained table; a constant table, e.g. sinusoids with sorted channels."""
ROWS = 256
"""Initial number of computed sinusoids."""


def sinusoids(length: int, width: int) -> Tensor:
    """Return ``(length, width)``: sines in the first half, cosines in the second (Vaswani et al. 2017)."""
    half = width // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000.0) / max(half - 1, 1)))
    angle = torch.arange(length, dtype=torch.float)[:, None] * rate
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    return nn.functional.pad(table, (0, width - 2 * half))


class SinusoidalPositions(nn.Module):
    """Sinusoids, computed on demand.

    ``width`` is the supernet's, also in an extracted subnet, which reads its first channels.
    """

    table: Tensor

    def __init__(self, width: int, length: int = ROWS) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(length, width), persistent=False)

    def resize(self, width: int) -> None:
        """Change the width to that of another supernet."""
        self.width = width
        self.table = sinusoids(len(self.table), width).to(self.table)

    def forward(self, length: int, features: int) -> Tensor:
        """Return position embeddings ``(length, features)``."""
        if length > len(self.table):
            self.table = sinusoids(max(length, 2 * len(self.table)), self.width).to(self.table)
        return self.table[:length, :features]


class StoredPositions(nn.Module):
    """Table of positions (length, C), a parameter or buffer.

    An extracted subnet has fewer columns than ``width``, the supernet's.
    """

    table: Tensor

    def __init__(self, width: int, length: int, features: int | None = None, trained: bool = True) -> None:
        super().__init__()
        self.width = width
        table = torch.randn(length, features or width) * width**-0.5
        if trained:
            self.table = nn.Parameter(table)
        else:
            self.register_buffer("table", table)

    def resize(self, width: int) -> None:
        self.width = width

    def forward(self, length: int, features: int) -> Tensor:
        """Return position embeddings ``(length, features)``."""
        if length > len(self.table):
            raise ConfigError(
                f"a sequence of {length} tokens, but positions are stored for {len(self.table)}; shorten it"
            )
        return self.table[:length, :features]


def positions_of(kind: str, width: int, length: int, features: int) -> SinusoidalPositions | StoredPositions:
    """Build the positions of a network.

    Args:
        kind: one of :data:`POSITIONS`.
        width: channels of the supernet.
        length: number of stored positions.
        features: this network's channels.
    """
    if kind not in POSITIONS:
        raise unknown_choice("kind of positions", kind, POSITIONS)
    if kind == "sinusoidal":
        return SinusoidalPositions(width)
    return StoredPositions(width, length, features, trained=kind == "learned")
