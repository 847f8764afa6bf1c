"""A block that autocast leaves alone: for sums that halves cannot hold."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

__all__ = ["without_autocast"]


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Compute inside the block in the types of the tensors, on the device of ``x``."""
    if x.device.type == "meta" or torch.compiler.is_exporting():  # no autocast there, and none in exported programs
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
