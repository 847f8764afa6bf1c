"""Projections of elastic multi-head attention.

As in HAT, the width Q = H * D of queries, keys and values does not depend on C. A smaller Q uses the first rows.

Shapes: B batch, T/S target and source length, H heads, D head dim, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.kinds import AttentionKind, AttentionState
from nas_core.layers.attention.softmax import SOFTMAX
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.weights import Affine

_FUSED_GAIN = 2**-0.5


class SelfAttentionWeights(NamedTuple):
    """Weights of self-attention for one architecture."""

    in_proj: Affine
    """Projection to queries, keys and values, ``(3Q, C)``."""
    out_proj: Affine
    heads: int
    relative: Tensor | None = None
    """Embeddings of relative positions ``(2R + 1, D)``, or None."""
    kind: AttentionKind = SOFTMAX


class CrossAttentionWeights(NamedTuple):
    """Weights of encoder-decoder attention for one architecture."""

    q_proj: Affine
    """Projection to queries, ``(Q, C of the decoder)``."""
    kv_proj: Affine
    """Projection to keys and values, ``(2Q, C of the encoder)``."""
    out_proj: Affine
    heads: int
    kind: AttentionKind = SOFTMAX


class ElasticSelfAttention(nn.Module):
    """Input and output projections of self-attention.

    Args:
        relative: largest distance and head dimension of relative positions, for mechanisms that support them.
    """

    def __init__(
        self,
        embed_dim: int,
        qkv_dim: int,
        kind: AttentionKind = SOFTMAX,
        relative: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.qkv_dim, self.kind = qkv_dim, kind
        self.relative = None
        if relative is not None and kind.takes_relative:
            clip, head_dim = relative
            self.relative = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * clip + 1, head_dim)))
        self.in_proj = ElasticLinear(embed_dim, 3 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for weight in self.in_proj.weight.detach().chunk(3):
            nn.init.xavier_uniform_(weight, _FUSED_GAIN)

    def select(self, embed_dim: int, heads: int, qkv_dim: int | None = None) -> SelfAttentionWeights:
        """Return the weights of these sizes. ``qkv_dim`` is the query width over all heads, by default the largest."""
        width = self.qkv_dim if qkv_dim is None else qkv_dim
        in_proj = _head_rows(self.in_proj.select(embed_dim, 3 * self.qkv_dim), 3, width)
        out_proj = self.out_proj.select(width, embed_dim)
        relative = None if self.relative is None else prefix(self.relative, len(self.relative), width // heads)
        return SelfAttentionWeights(in_proj, out_proj, heads, relative, self.kind)


class ElasticCrossAttention(nn.Module):
    """Input and output projections of encoder-decoder attention.

    Args:
        memory_dim: largest width of the encoder output.
    """

    def __init__(self, embed_dim: int, memory_dim: int, qkv_dim: int, kind: AttentionKind = SOFTMAX) -> None:
        super().__init__()
        self.qkv_dim, self.kind = qkv_dim, kind
        self.q_proj = ElasticLinear(embed_dim, qkv_dim, _FUSED_GAIN)
        self.kv_proj = ElasticLinear(memory_dim, 2 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for weight in self.kv_proj.weight.detach().chunk(2):
            nn.init.xavier_uniform_(weight, _FUSED_GAIN)

    def select(self, embed_dim: int, memory_dim: int, heads: int, qkv_dim: int | None = None) -> CrossAttentionWeights:
        width = self.qkv_dim if qkv_dim is None else qkv_dim
        return CrossAttentionWeights(
            self.q_proj.select(embed_dim, width),
            _head_rows(self.kv_proj.select(memory_dim, 2 * self.qkv_dim), 2, width),
            self.out_proj.select(width, embed_dim),
            heads,
            self.kind,
        )


def _head_rows(affine: Affine, chunks: int, rows: int) -> Affine:
    if rows * chunks == len(affine.bias):
        return affine
    return Affine(*(x.view(chunks, -1, *x.shape[1:])[:, :rows].flatten(0, 1) for x in affine))


def build_kinds(kinds: Sequence[AttentionKind], make: Callable[[AttentionKind], nn.Module]) -> nn.Module:
    """Build a module for one attention mechanism, or a ``ModuleDict`` for several."""
    # Parameter names of a static subnet contain no name of a mechanism.
    return make(kinds[0]) if len(kinds) == 1 else nn.ModuleDict({kind.name: make(kind) for kind in kinds})


def select_kind(attention: nn.Module, name: str, *sizes: Any) -> Any:
    module: Any = attention[name] if isinstance(attention, nn.ModuleDict) else attention
    return module.select(*sizes)


def split_heads(x: Tensor, chunks: int, heads: int) -> tuple[Tensor, ...]:
    """Split ``(B, T, chunks * H * D)`` into ``chunks`` tensors ``(B, H, T, D)``."""
    batch, length, width = x.shape
    return x.view(batch, length, chunks, heads, width // (chunks * heads)).permute(2, 0, 3, 1, 4).unbind(0)


def join_heads(x: Tensor, out_proj: Affine) -> Tensor:
    """Concatenate heads ``(B, H, T, D)`` and apply the output projection: ``(B, T, C)``."""
    return F.linear(x.transpose(1, 2).flatten(2), *out_proj)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    weights: SelfAttentionWeights | CrossAttentionWeights,
    mask: Tensor | None,
    dropout: float = 0.0,
    causal: bool = False,
    key_positions: Tensor | None = None,
) -> Tensor:
    """Compute attention of ``q`` over ``k`` and ``v``, with output projection: ``(B, T, C)``."""
    relative = weights.relative if isinstance(weights, SelfAttentionWeights) else None
    output = weights.kind.attend(
        q, k, v, mask=mask, causal=causal, relative=relative, dropout=dropout, key_positions=key_positions
    )
    return join_heads(output, weights.out_proj)


def self_projections(x: Tensor, weights: SelfAttentionWeights) -> tuple[Tensor, Tensor, Tensor]:
    """Project ``x`` ``(B, T, C)`` to queries, keys and values ``(B, H, T, D)``."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return q, k, v


def self_attention(
    x: Tensor, weights: SelfAttentionWeights, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """Compute self-attention of ``x`` ``(B, T, C)``."""
    return attend(*self_projections(x, weights), weights, mask, dropout, causal)


def self_read(x: Tensor, weights: SelfAttentionWeights) -> tuple[Tensor, AttentionState]:
    """Compute causal self-attention ``(B, T, C)`` of the first positions, and the decoding state after them."""
    q, k, v = self_projections(x, weights)
    return attend(q, k, v, weights, None, causal=True), weights.kind.state_after(k, v)


def self_step(x: Tensor, weights: SelfAttentionWeights, past: AttentionState | None) -> tuple[Tensor, AttentionState]:
    """Compute causal self-attention ``(B, 1, C)`` of the next position, and the new decoding state."""
    output, state = weights.kind.step(*self_projections(x, weights), past, weights.relative)
    return join_heads(output, weights.out_proj), state


def cross_keys_values(memory: Tensor, weights: CrossAttentionWeights) -> tuple[Tensor, Tensor]:
    """Project the encoder output ``(B, S, C)`` to keys and values ``(B, H, S, D)``."""
    k, v = split_heads(F.linear(memory, *weights.kv_proj), 2, weights.heads)
    return k, v


def cross_attention(
    x: Tensor,
    keys_values: tuple[Tensor, Tensor],
    weights: CrossAttentionWeights,
    mask: Tensor | None,
    dropout: float,
    key_positions: Tensor | None = None,
) -> Tensor:
    """Compute attention of ``x`` ``(B, T, C)`` to the keys and values of another sequence."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    return attend(q, *keys_values, weights, mask, dropout, False, key_positions)


def cross_step(
    x: Tensor, memory: AttentionState, weights: CrossAttentionWeights, mask: Tensor | None, position: int
) -> Tensor:
    """Compute cross-attention of one target position ``(B, 1, C)``."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    return join_heads(weights.kind.read(q, memory, mask, position), weights.out_proj)
