"""What a family of networks is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.random_streams import own_streams

Settings = Mapping[str, Any]
"""What distinguishes a network from the others of its family, as JSON-able data."""
Built = tuple[nn.Module, tuple[Tensor, ...]]
"""A network in evaluation mode, and the inputs of one pass: batch 1."""


@dataclass(frozen=True)
class Family:
    """Networks of one kind that differ in widths, depths, kernels and resolution."""

    name: str
    description: str
    """One line for the list of families: what varies."""
    sample: Callable[[np.random.Generator], Settings]
    """Random settings."""
    build: Callable[[Settings], Built]
    """The network of such settings, with random weights."""
    batched: bool = True
    """Whether the first dimension of every input is the batch, which may have any size."""

    def network(self, settings: Settings) -> Built:
        """The same weights and inputs each time; the caller's random draws are untouched. Inputs are of as many as
        the settings' ``batch`` says, each the same."""
        with own_streams(0):
            network, inputs = self.build(settings)
        if (batch := int(settings.get("batch", 1))) > 1:
            inputs = tuple(given.repeat(batch, *[1] * (given.ndim - 1)) for given in inputs)
        return network.eval().requires_grad_(False), inputs


def image(resolution: int) -> tuple[Tensor]:
    """One random square image ``(1, 3, resolution, resolution)``."""
    return (torch.randn(1, 3, resolution, resolution),)
