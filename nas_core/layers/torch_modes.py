"""Evaluation, export, tracing and autocast modes of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode inside a ``with`` block, then restore its mode."""
    training = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(training)


def is_exporting() -> bool:
    """Return True under ``torch.export``, and in PyTorch 2.6 also under ``torch.compile``."""
    return bool(getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)())


def is_traced() -> bool:
    """Return True under any exporter or tracer."""
    tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return torch.onnx.is_in_onnx_export() or is_exporting() or tracing


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context that disables autocast on the device of ``x``."""
    if x.device.type == "meta" or not torch.is_autocast_enabled(x.device.type):  # exporters cannot trace the switch
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
