"""Attention with its projections, whatever its kind: self, cross, and both one position at a time.

Shapes: B batch, T/S target and source length, H heads, D head dim, C channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.layers.attention.kinds import AttentionState
from nas_core.layers.attention.projections import CrossAttentionWeights, SelfAttentionWeights, joined, split_heads


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
    """Attention of ``q`` (B, H, T, D) over ``k``, ``v`` (B, H, S, D), heads joined and projected: (B, T, C).

    The other arguments are those of :meth:`AttentionKind.attend`.

    Raises:
        ConfigError: a mask of another shape or type.
    """
    wanted = (q.shape[0], 1, 1, k.shape[2])
    if mask is not None and (mask.dtype != torch.bool or mask.shape != wanted):
        raise ConfigError(
            f"the mask is {mask.dtype} {tuple(mask.shape)}; expected bool {wanted}, True at keys that may be read"
        )
    relative = weights.relative if isinstance(weights, SelfAttentionWeights) else None
    read = weights.kind.attend(
        q, k, v, mask=mask, causal=causal, relative=relative, dropout=dropout, key_positions=key_positions
    )
    return joined(read, weights.out_proj)


def self_attention(
    x: Tensor, weights: SelfAttentionWeights, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """``x`` (B, T, C) to (B, T, C)."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return attend(q, k, v, weights, mask, dropout, causal)


def self_read(x: Tensor, weights: SelfAttentionWeights) -> tuple[Tensor, AttentionState]:
    """The first positions of causal self-attention: ``x`` (B, T, C) to (B, T, C), and what :func:`self_step` takes for
    the next."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return attend(q, k, v, weights, None, causal=True), weights.kind.after(k, v)


def self_step(x: Tensor, weights: SelfAttentionWeights, past: AttentionState | None) -> tuple[Tensor, AttentionState]:
    """The next position of causal self-attention: ``x`` (B, 1, C) to (B, 1, C), and what to hand in next time."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    read, state = weights.kind.step(q, k, v, past, weights.relative)
    return joined(read, weights.out_proj), state


def cross_keys_values(memory: Tensor, weights: CrossAttentionWeights) -> tuple[Tensor, Tensor]:
    """Keys and values (B, H, S, D) of the encoder's output ``memory`` (B, S, C); computed once per sentence."""
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
    """``x`` (B, T, C) reads keys and values of another sequence: (B, T, C)."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    return attend(q, *keys_values, weights, mask, dropout, False, key_positions)


def cross_step(
    x: Tensor, memory: AttentionState, weights: CrossAttentionWeights, mask: Tensor | None, position: int
) -> Tensor:
    """The target's position ``position``, ``x`` (B, 1, C), reads the memory: (B, 1, C)."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    return joined(weights.kind.read(q, memory, mask, position), weights.out_proj)
