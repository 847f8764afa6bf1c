"""Modes of torch: export, tracing and autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def is_exporting() -> bool:
    """Return True under ``torch.export``; torch 2.6 cannot distinguish it from ``torch.compile``."""
    return bool(getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)())


def is_traced() -> bool:
    """Return True under any exporter or tracer."""
    tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return torch.onnx.is_in_onnx_export() or is_exporting() or tracing


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Disable autocast on the device of ``x``, for sums that need more than 16 bits."""
    if x.device.type == "meta" or not torch.is_autocast_enabled(x.device.type):  # exporters cannot trace the switch
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
