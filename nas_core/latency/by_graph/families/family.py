"""Families of networks with random sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.random_streams import own_streams

T = TypeVar("T")
Settings = Mapping[str, Any]
"""Settings of one network, as JSON data."""
Built = tuple[nn.Module, tuple[Tensor, ...]]
"""Network, and its inputs with batch size 1."""


@dataclass(frozen=True)
class Family:
    """Family of networks that differ in widths, depths, kernels and resolution."""

    name: str
    description: str
    sample: Callable[[np.random.Generator], Settings]
    build: Callable[[Settings], Built]
    """Function that builds a network with random weights."""
    batched: bool = True
    """True if the first dimension of every input is the batch size."""

    def network(self, settings: Settings) -> Built:
        """Return a network in evaluation mode and inputs with batch size ``settings["batch"]``, with a fixed seed."""
        with own_streams(0):
            network, inputs = self.build(settings)
        if (batch := int(settings.get("batch", 1))) > 1:
            inputs = tuple(x.repeat(batch, *[1] * (x.ndim - 1)) for x in inputs)
        return network.eval().requires_grad_(False), inputs


def image(resolution: int) -> tuple[Tensor]:
    """Return a random image ``(1, 3, resolution, resolution)``."""
    return (torch.randn(1, 3, resolution, resolution),)


def draw(rng: np.random.Generator, options: Sequence[T]) -> T:
    return options[int(rng.integers(len(options)))]


def width(rng: np.random.Generator, channels: float, fraction: float = 0.3, step: int = 8) -> int:
    """Draw a multiple of ``step`` that differs from ``channels`` by at most ``fraction``."""
    return max(step, round(channels * rng.uniform(1 - fraction, 1 + fraction) / step) * step)


def resolution(rng: np.random.Generator, low: int, high: int, step: int = 16) -> int:
    """Draw a multiple of ``step`` from ``low`` to ``high``, inclusive."""
    return int(rng.integers(low // step, high // step + 1)) * step


def he_weights(network: nn.Module) -> nn.Module:
    """Initialise weights for a constant variance through ReLUs (He et al., 2015)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network
