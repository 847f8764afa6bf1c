"""Modes of torch that a computation asks for or leaves: exporting, autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def is_exporting() -> bool:
    """Whether ``torch.export`` follows; torch 2.6, which does not tell it from ``torch.compile``, says so of both."""
    tell = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return bool(tell())


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Compute inside the block in the types of the tensors, where ``x`` is: for sums that halves cannot hold."""
    if x.device.type == "meta" or not torch.is_autocast_enabled(x.device.type):  # exporters follow no switch of it
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
