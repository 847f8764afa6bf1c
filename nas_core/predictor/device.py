"""Transfer of arrays to a device, and choice of the precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.precision import check_precision

CHOICES = ("auto", "fp32", "bf16")
"""Allowed precisions; ``auto``: bf16 if the device supports it, otherwise fp32."""
HOSTS = ("cpu",)


def on_host(device: torch.device) -> bool:
    """Return whether values on a device can be read without synchronisation."""
    return device.type in HOSTS


def to_device(array: NDArray[Any], device: torch.device | str) -> Tensor:
    """Copy an array to a device, asynchronously on CUDA."""
    tensor, device = torch.from_numpy(np.array(array)), torch.device(device)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def chosen_precision(precision: str, device: torch.device) -> str:
    """Return a precision, with ``auto`` resolved to bf16 or fp32."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        with torch.cuda.device(device):
            return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported() else "fp32"


def usable_precision(precision: str, device: torch.device) -> str:
    """Return :func:`chosen_precision`, or fp32 if the device does not support it."""
    try:
        return check_precision(chosen_precision(precision, device), device)
    except ConfigError:
        return "fp32"
