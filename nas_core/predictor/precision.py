"""The precision of a predictor's products: as given, or the device's fast one."""

from __future__ import annotations

import torch

from nas_core.errors import ConfigError
from nas_core.precision import PRECISIONS, check_precision

CHOICES = ("auto", *PRECISIONS)
"""What may be given; ``auto``: bf16 where the device multiplies in it, else fp32."""


def chosen_precision(precision: str, device: torch.device) -> str:
    """The precision, or for ``auto`` the device's fast one: one of :data:`nas_core.precision.PRECISIONS`."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        with torch.cuda.device(device):
            return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if device.type == "cpu" and torch.ops.mkldnn._is_mkldnn_bf16_supported() else "fp32"


def usable_precision(precision: str, device: torch.device) -> str:
    """The same where the device computes in it, else fp32: what a model that was trained elsewhere predicts in."""
    try:
        return check_precision(chosen_precision(precision, device), device)
    except ConfigError:
        return "fp32"
