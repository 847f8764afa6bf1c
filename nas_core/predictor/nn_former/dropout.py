"""Dropout whose mask comes from bytes: on a CPU torch draws one number per element, which takes 40 % of a training
step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_BITS = {
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}

__all__ = ["dropout", "keep_mask", "relu_dropout", "scaled_mask"]


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Zero each element with that probability and scale the others, so that the mean stays.

    On a CPU the probability is rounded to a multiple of 1/256.
    """
    if not training or not probability:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, probability)
    return x * keep_mask(x.shape, probability, x.dtype)


def relu_dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Dropout of relu(x), whose backward pass is one product."""
    if not training or not probability or x.device.type != "cpu":
        return dropout(functional.relu(x), probability, training)
    bits = x.detach().contiguous().view(_BITS[x.dtype])  # comparing halves as integers is five times faster
    return x * keep_mask(x.shape, probability, x.dtype, bits > 0)


def scaled_mask(shape: torch.Size, probability: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """0 where an element is dropped, else the scale of those that stay; on any device."""
    if device.type == "cpu":
        return keep_mask(shape, probability, dtype)
    return torch.empty(shape, dtype=dtype, device=device).bernoulli_(1 - probability).div_(1 - probability)


def keep_mask(shape: torch.Size, probability: float, dtype: torch.dtype, where: Tensor | None = None) -> Tensor:
    """0 where an element is dropped, or ``where`` is False, else the scale of those that stay; on the CPU."""
    count, dropped = shape.numel(), min(255, round(256 * probability))
    bits = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = bits.view(torch.uint8)[:count].view(shape) >= dropped
    if where is not None:
        kept &= where
    return kept.to(dtype).mul_(256 / (256 - dropped))
