"""Where tensors lie, and what follows from it: what the host may read for free, and how arrays get there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

HOSTS = ("cpu",)
"""Kinds of device that are the host itself."""


def on_host(device: torch.device) -> bool:
    """Whether the device is the host itself: looking at a value waits for nothing, and memory is its caches.

    Elsewhere nothing that is computed is looked at before the end, and sums that depend on the order in which
    threads arrive are not taken.
    """
    return device.type in HOSTS


def uploaded(array: NDArray[Any], device: torch.device | str) -> Tensor:
    """A copy of the array on the device; the host does not wait for CUDA."""
    tensor, device = torch.from_numpy(np.array(array)), torch.device(device)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
