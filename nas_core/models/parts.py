"""A network that an architecture consists of, with inputs to export it for."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class SpacePart:
    """One network that runs ``times`` times."""

    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    times: int = 1
