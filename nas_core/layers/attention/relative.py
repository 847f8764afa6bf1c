"""Softmax attention that knows distances: a learned vector per clipped distance is added to the keys."""

from __future__ import annotations

import torch
from torch import Tensor


def relative_bias(q: Tensor, table: Tensor, keys: int, mask: Tensor | None, causal: bool, first: int = 0) -> Tensor:
    """What is added to the scores (Shaw et al. 2018, "Self-Attention with Relative Position Representations",
    equation 5, keys only): ``(B, H, T, S)``, -inf where a key may not be read.

    Args:
        q: queries ``(B, H, T, D)``, at positions ``first`` and after.
        table: ``(2 R + 1, D)``, the vectors of distances -R to R from query to key; farther ones count as R.
        keys: S, at positions from 0.
        mask: bool, True where a key may be read, broadcastable to ``(B, H, T, S)``.
        causal: later keys may not be read.
    """
    clip = len(table) // 2
    distance = torch.arange(keys, device=q.device) - torch.arange(first, first + q.shape[2], device=q.device)[:, None]
    by_distance: Tensor = q @ table.to(q.dtype).transpose(0, 1) * q.shape[-1] ** -0.5
    bias: Tensor = by_distance.gather(-1, (distance.clamp(-clip, clip) + clip).expand(*q.shape[:2], -1, -1))
    if mask is not None:
        bias = bias.masked_fill(~mask, float("-inf"))
    if causal:
        bias = bias.masked_fill(distance > 0, float("-inf"))
    return bias
