"""Multi-head softmax attention of elastic width: self, causal, cross, and one step at a time.

As in HAT, queries, keys and values have a constant width Q = H * D whatever the number of heads; only the channels of
the inputs and of the output are elastic, so the number of heads changes no weight.

Shapes: B batch, T/S target and source length, H heads, D head dim, C channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.linear import ElasticLinear
from nas_core.layers.weights import Affine

_FUSED_GAIN = 2**-0.5


class SelfAttentionWeights(NamedTuple):
    in_proj: Affine
    """(3Q, C): queries, keys, values."""
    out_proj: Affine
    heads: int


class CrossAttentionWeights(NamedTuple):
    q_proj: Affine
    """(Q, C of the decoder)."""
    kv_proj: Affine
    """(2Q, C of the encoder): keys, values."""
    out_proj: Affine
    heads: int


class ElasticSelfAttention(nn.Module):
    """Projections of self-attention."""

    def __init__(self, embed_dim: int, qkv_dim: int) -> None:
        super().__init__()
        self.qkv_dim = qkv_dim
        self.in_proj = ElasticLinear(embed_dim, 3 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for part in self.in_proj.weight.detach().chunk(3):
            nn.init.xavier_uniform_(part, _FUSED_GAIN)

    def select(self, embed_dim: int, heads: int) -> SelfAttentionWeights:
        return SelfAttentionWeights(
            self.in_proj.select(embed_dim, 3 * self.qkv_dim), self.out_proj.select(self.qkv_dim, embed_dim), heads
        )


class ElasticCrossAttention(nn.Module):
    """Projections of encoder-decoder attention; the two sides may have different widths."""

    def __init__(self, embed_dim: int, memory_dim: int, qkv_dim: int) -> None:
        super().__init__()
        self.qkv_dim = qkv_dim
        self.q_proj = ElasticLinear(embed_dim, qkv_dim, _FUSED_GAIN)
        self.kv_proj = ElasticLinear(memory_dim, 2 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for part in self.kv_proj.weight.detach().chunk(2):
            nn.init.xavier_uniform_(part, _FUSED_GAIN)

    def select(self, embed_dim: int, memory_dim: int, heads: int) -> CrossAttentionWeights:
        return CrossAttentionWeights(
            self.q_proj.select(embed_dim, self.qkv_dim),
            self.kv_proj.select(memory_dim, 2 * self.qkv_dim),
            self.out_proj.select(self.qkv_dim, embed_dim),
            heads,
        )


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(B, T, parts * H * D)`` as ``parts`` tensors ``(B, H, T, D)``."""
    batch, length, width = x.shape
    return x.view(batch, length, parts, heads, width // (parts * heads)).permute(2, 0, 3, 1, 4).unbind(0)


def attend(
    q: Tensor, k: Tensor, v: Tensor, out_proj: Affine, mask: Tensor | None, dropout: float, causal: bool = False
) -> Tensor:
    """Attention of ``q`` (B, H, T, D) over ``k``, ``v`` (B, H, S, D), heads joined and projected: (B, T, C).

    ``mask`` is boolean, True where a key may be read, broadcastable to (B, H, T, S).
    """
    x = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal)
    return F.linear(x.transpose(1, 2).flatten(2), *out_proj)


def self_attention(
    x: Tensor, weights: SelfAttentionWeights, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """``x`` (B, T, C) to (B, T, C)."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return attend(q, k, v, weights.out_proj, mask, dropout, causal)


def cross_keys_values(memory: Tensor, weights: CrossAttentionWeights) -> tuple[Tensor, Tensor]:
    """Keys and values (B, H, S, D) of the encoder's output ``memory`` (B, S, C); computed once per sentence."""
    k, v = split_heads(F.linear(memory, *weights.kv_proj), 2, weights.heads)
    return k, v


def cross_attention(
    x: Tensor, keys_values: tuple[Tensor, Tensor], weights: CrossAttentionWeights, mask: Tensor | None, dropout: float
) -> Tensor:
    """``x`` (B, T, C) reads keys and values of another sequence: (B, T, C)."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    return attend(q, *keys_values, weights.out_proj, mask, dropout)


def naive_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    """Softmax attention as written in the textbook, in float32: the reference; (B, H, T, D)."""
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    attended: Tensor = scores.softmax(-1) @ v.float()
    return attended.to(q.dtype)
