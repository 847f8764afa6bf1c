"""What divides the weighted sums in the end, and the numbers they are added up in."""

from __future__ import annotations

import torch
from torch import Tensor

EPS = 1e-6
"""Smallest denominator: a query without any positive channel gets 0."""
NORMALIZE = ("denominator", "rms", "layer")
"""What divides the weighted sum: the sum of the weights (cosFormer, equation 10), or RMSNorm or LayerNorm over each
head's channels instead, whose gradients are bounded (NormAttention; Qin et al. 2022, "The Devil in Linear
Transformer")."""


def working_dtype(x: Tensor) -> torch.dtype:
    """float32, or float64 for float64 inputs: sums over thousands of positions do not fit into halves."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def finished(sums: Tensor, weights: Tensor | None, normalize: str, eps: float) -> Tensor:
    """From weighted sums ``(..., D)`` and the sums of the weights ``(..., 1)`` to outputs ``(..., D)``."""
    if normalize == "denominator":
        assert weights is not None
        return sums / weights.clamp(min=eps)
    if normalize == "layer":
        sums = sums - sums.mean(-1, keepdim=True)
    return sums * (sums.square().mean(-1, keepdim=True) + eps).rsqrt()
