"""Random draws that the families share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from torch import nn

T = TypeVar("T")


def draw(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of the options, as a plain Python value."""
    return options[int(rng.integers(len(options)))]


def width(rng: np.random.Generator, channels: float, spread: float = 0.3, step: int = 8) -> int:
    """About so many channels, up to ``spread`` less or more: a multiple of ``step``, which is the least."""
    return max(step, round(channels * rng.uniform(1 - spread, 1 + spread) / step) * step)


def resolution(rng: np.random.Generator, low: int, high: int, step: int = 16) -> int:
    """Pixels along a side: a multiple of ``step``, both ends included."""
    return int(rng.integers(low // step, high // step + 1)) * step


def he_weights(network: nn.Module) -> nn.Module:
    """Weights whose outputs keep their variance through ReLUs, without normalisation: nothing explodes, and nothing
    shrinks to denormal numbers, with which a processor computes a hundred times slower."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return network
