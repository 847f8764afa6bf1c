"""Scaled dot-product attention, with optional relative positions.

Shapes: B batch, T/S target and source length, H heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.layers.attention.kinds import AttentionKind


@dataclass(frozen=True)
class SoftmaxAttention(AttentionKind):
    """Softmax attention (Vaswani et al. 2017)."""

    name: str = "softmax"
    takes_relative = True

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        relative: Tensor | None = None,
        dropout: float = 0.0,
        **options: Any,
    ) -> Tensor:
        if relative is not None:
            bias = relative_bias(q, relative, k.shape[2], mask, causal)
            return F.scaled_dot_product_attention(q, k, v, bias, dropout)
        if causal and mask is not None:
            earlier = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
            return F.scaled_dot_product_attention(q, k, v, mask & earlier, dropout)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal)

    def weights(self, q: Tensor, k: Tensor, relative: Tensor | None = None) -> Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if relative is not None:
            scores = scores + relative_bias(q, relative, k.shape[2], None, False)
        weights: Tensor = scores.softmax(-1)
        return weights

    def plain(self, q: Tensor, k: Tensor, v: Tensor, relative: Tensor | None = None) -> Tensor:
        return self.weights(q, k, relative) @ v

    def macs(self, queries: int, keys: int, width: int, heads: int, *, causal: bool = False, clip: int = 0) -> int:
        return 2 * queries * keys * width + (queries * width * (2 * clip + 1) if clip else 0)

    def temporary_numel(
        self, batch: int, queries: int, keys: int, width: int, heads: int, clip: int = 0, *, causal: bool = False
    ) -> int:
        return (batch * heads + 4) * queries * keys if clip else 0  # relative bias and two int64 distance tables

    def operation(self, role: str) -> str:
        return "cross_attention" if role == "cross" else f"{role}_self_attention"


SOFTMAX = SoftmaxAttention()


def relative_bias(q: Tensor, table: Tensor, keys: int, mask: Tensor | None, causal: bool) -> Tensor:
    """Return the bias ``(B, H, T, S)`` of attention scores by relative positions (Shaw et al. 2018, keys only).

    Args:
        q: queries ``(B, H, T, D)`` of the last T of S positions.
        table: embeddings ``(2 R + 1, D)`` of the distances -R to R from query to key. Larger distances are clipped.
        keys: S.
        mask: False at masked keys.
    """
    clip, first = len(table) // 2, keys - q.shape[2]
    distance = torch.arange(keys, device=q.device) - torch.arange(first, first + q.shape[2], device=q.device)[:, None]
    by_distance: Tensor = q @ table.to(q.dtype).transpose(0, 1) * q.shape[-1] ** -0.5
    bias: Tensor = by_distance.gather(-1, (distance.clamp(-clip, clip) + clip).expand(*q.shape[:2], -1, -1))
    if mask is not None:
        bias = bias.masked_fill(~mask, float("-inf"))
    if causal:
        bias = bias.masked_fill(distance > 0, float("-inf"))
    return bias
