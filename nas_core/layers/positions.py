"""Position embeddings of a supernet. Subnets use the first channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, check_choice

POSITIONS = ("sinusoidal", "learned", "stored")
"""Position embeddings.

- ``sinusoidal``: sinusoids, for any length.
- ``learned``: a trained table.
- ``stored``: a constant table.
"""
ROWS = 256
"""Initial number of sinusoidal positions."""


def sinusoids(length: int, width: int) -> Tensor:
    """Return ``(length, width)``: sines in the first half, cosines in the second (Vaswani et al. 2017)."""
    half = width // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000.0) / max(half - 1, 1)))
    angle = torch.arange(length, dtype=torch.float)[:, None] * rate
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    return nn.functional.pad(table, (0, width - 2 * half))


class SinusoidalPositions(nn.Module):
    """Sinusoidal position embeddings.

    Args:
        width: channels of the supernet, also in an extracted subnet.
    """

    table: Tensor

    def __init__(self, width: int, length: int = ROWS) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(length, width), persistent=False)

    def resize(self, width: int) -> None:
        self.width = width
        self.table = sinusoids(len(self.table), width).to(self.table)

    def forward(self, length: int, features: int) -> Tensor:
        """Return position embeddings ``(length, features)``."""
        if length > len(self.table):
            self.table = sinusoids(max(length, 2 * len(self.table)), self.width).to(self.table)
        return self.table[:length, :features]


class StoredPositions(nn.Module):
    """Position embeddings in a table ``(length, features)``, a parameter or buffer.

    Args:
        width: channels of the supernet.
        features: channels of the table. Default: ``width``.
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
        if length > len(self.table):
            raise ConfigError(
                f"sequence of {length} tokens exceeds the {len(self.table)} position embeddings; shorten it"
            )
        return self.table[:length, :features]


def positions_of(kind: str, width: int, length: int, features: int) -> SinusoidalPositions | StoredPositions:
    """Build the position embeddings of a network.

    Args:
        kind: one of :data:`POSITIONS`.
        width: channels of the supernet.
        length: number of stored positions.
        features: channels of this network.
    """
    check_choice("kind of positions", kind, POSITIONS)
    if kind == "sinusoidal":
        return SinusoidalPositions(width)
    return StoredPositions(width, length, features, trained=kind == "learned")
