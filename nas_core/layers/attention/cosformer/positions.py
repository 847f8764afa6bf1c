"""Positions as angles, and what scales them: one length for all, or each sequence's own."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Turns(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)`` or, where positions differ between sequences, ``(B, 1, T, 1)``."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> Turns:
        return Turns(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def turns(positions: Tensor, max_length: int | Tensor, dtype: torch.dtype) -> Turns:
    """Angles pi/2 * position / max_length of positions ``(T,)`` or ``(B, T)``, computed in float64; one
    ``max_length`` for all, or ``(B, 1)``."""
    longest = max_length.double() if isinstance(max_length, Tensor) else max_length
    angles = positions.double() * (math.pi / 2 / longest)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return Turns(angles.sin().to(dtype), angles.cos().to(dtype))


def own_scale(x: Tensor, key_mask: Tensor | None) -> tuple[Tensor, int | Tensor]:
    """Positions and M of self-attention of ``x`` ``(B, H, T, D)`` that is scaled by each sequence's own length.

    Positions count tokens, wherever the padding is: ``(T,)`` and T without a mask, else ``(B, T)`` and ``(B, 1)``.
    Padding has the position of a token beside it, so that its weights stay as harmless as a token's.
    """
    if key_mask is None:
        return torch.arange(x.shape[2], device=x.device), x.shape[2]
    counted = key_mask.cumsum(1, dtype=torch.long)
    return (counted - 1).clamp(min=0), counted[:, -1:].clamp(min=1)
