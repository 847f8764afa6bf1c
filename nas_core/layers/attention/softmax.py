"""Multi-head attention of elastic width, softmax or linear: self, causal, cross.

Both kinds have the same projections and heads. As in HAT, queries, keys and values have a width Q = H * D whatever the
number of heads, so that the number of heads changes no weight; where Q itself is searched, each of the three uses a
prefix of its rows.

Shapes: B batch, T/S target and source length, H heads, D head dim, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.angles import NORMALIZE
from nas_core.layers.attention.cosformer.attention import cosformer_attention
from nas_core.layers.attention.cosformer.state import CosformerState
from nas_core.layers.attention.relative import relative_bias
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.weights import Affine

_FUSED_GAIN = 2**-0.5
ATTENTION = ("softmax", "linear")
"""Kinds of attention: scaled dot products, or cosFormer."""


@dataclass(frozen=True)
class LinearAttention:
    """Settings of linear attention, see :func:`nas_core.layers.attention.cosformer.cosformer_attention`."""

    max_length: int | None = 1024
    """M of the cosine and the longest sequence; part of the model, since weights depend on it. None: each sequence's
    own length, for self-attention that sees all of it."""
    normalize: str = "denominator"
    """denominator, rms or layer."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ConfigError(f"max_length of linear attention is {self.max_length}; expected at least 1")
        if self.normalize not in NORMALIZE:
            raise unknown_choice("normalisation of linear attention", self.normalize, NORMALIZE)

    @property
    def longest(self) -> int:
        """M of attention that decodes.

        Raises:
            ConfigError: it has none.
        """
        if self.max_length is None:
            raise ConfigError(
                "linear attention that decodes needs a max_length: it cannot know how long a sequence gets"
            )
        return self.max_length


class SelfAttentionWeights(NamedTuple):
    in_proj: Affine
    """(3Q, C): queries, keys, values."""
    out_proj: Affine
    heads: int
    relative: Tensor | None = None
    """(2R + 1, D): vectors of distances, softmax attention only."""
    linear: LinearAttention | None = None
    """None: softmax."""


class CrossAttentionWeights(NamedTuple):
    q_proj: Affine
    """(Q, C of the decoder)."""
    kv_proj: Affine
    """(2Q, C of the encoder): keys, values."""
    out_proj: Affine
    heads: int
    linear: LinearAttention | None = None
    """None: softmax."""


class ElasticSelfAttention(nn.Module):
    """Projections of self-attention.

    Args:
        linear: settings of linear attention; None for softmax.
        relative: R and D of a table of vectors for clipped distances, added to the keys; softmax only.
    """

    def __init__(
        self,
        embed_dim: int,
        qkv_dim: int,
        linear: LinearAttention | None = None,
        relative: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.qkv_dim, self.linear = qkv_dim, linear
        self.relative = None
        if relative is not None and linear is None:
            clip, head_dim = relative
            self.relative = nn.Parameter(nn.init.xavier_uniform_(torch.empty(2 * clip + 1, head_dim)))
        self.in_proj = ElasticLinear(embed_dim, 3 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for part in self.in_proj.weight.detach().chunk(3):
            nn.init.xavier_uniform_(part, _FUSED_GAIN)

    def select(self, embed_dim: int, heads: int, qkv_dim: int | None = None) -> SelfAttentionWeights:
        """``qkv_dim``: Q, default the full one."""
        used = self.qkv_dim if qkv_dim is None else qkv_dim
        in_proj = self.in_proj.select(embed_dim, 3 * self.qkv_dim)
        if used != self.qkv_dim:
            in_proj = Affine(*(x.view(3, -1, *x.shape[1:])[:, :used].flatten(0, 1) for x in in_proj))
        out_proj = self.out_proj.select(used, embed_dim)
        relative = None if self.relative is None else prefix(self.relative, len(self.relative), used // heads)
        return SelfAttentionWeights(in_proj, out_proj, heads, relative, self.linear)


class ElasticCrossAttention(nn.Module):
    """Projections of encoder-decoder attention; the two sides may have different widths."""

    def __init__(self, embed_dim: int, memory_dim: int, qkv_dim: int, linear: LinearAttention | None = None) -> None:
        super().__init__()
        self.qkv_dim, self.linear = qkv_dim, linear
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
            self.linear,
        )


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(B, T, parts * H * D)`` as ``parts`` tensors ``(B, H, T, D)``."""
    batch, length, width = x.shape
    return x.view(batch, length, parts, heads, width // (parts * heads)).permute(2, 0, 3, 1, 4).unbind(0)


def joined(x: Tensor, out_proj: Affine) -> Tensor:
    """Heads ``(B, H, T, D)`` joined and projected: (B, T, C)."""
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
    """Attention of ``q`` (B, H, T, D) over ``k``, ``v`` (B, H, S, D), heads joined and projected: (B, T, C).

    ``mask`` (B, 1, 1, S) is boolean, True at keys that may be read. ``key_positions`` (B, S) are read by linear
    attention to another sequence. Dropout is on the weights of softmax; linear attention has none.

    Raises:
        ConfigError: a mask of another shape or type.
    """
    wanted = (q.shape[0], 1, 1, k.shape[2])
    if mask is not None and (mask.dtype != torch.bool or mask.shape != wanted):
        raise ConfigError(
            f"the mask is {mask.dtype} {tuple(mask.shape)}; expected bool {wanted}, True at keys that may be read"
        )
    relative = getattr(weights, "relative", None)
    if weights.linear is not None:
        tokens = None if mask is None else mask[:, 0, 0]
        config = weights.linear
        x = cosformer_attention(
            q, k, v, max_length=config.max_length, causal=causal, key_mask=tokens, key_positions=key_positions,
            normalize=config.normalize,
        )  # fmt: skip
    elif relative is not None:
        bias = relative_bias(q, relative, k.shape[2], mask, causal)
        x = F.scaled_dot_product_attention(q, k, v, bias, dropout)
    elif causal and mask is not None:
        earlier = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
        x = F.scaled_dot_product_attention(q, k, v, mask & earlier, dropout)
    else:
        x = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal)
    return joined(x, weights.out_proj)


def self_attention(
    x: Tensor, weights: SelfAttentionWeights, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """``x`` (B, T, C) to (B, T, C)."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return attend(q, k, v, weights, mask, dropout, causal)


Past = tuple[Tensor, Tensor] | CosformerState
"""Of the positions decoded so far: keys and values (B, H, t, D), or their sums in linear attention."""


def self_step(x: Tensor, weights: SelfAttentionWeights, past: Past | None) -> tuple[Tensor, Past]:
    """The next position of causal self-attention: ``x`` (B, 1, C) to (B, 1, C), and what to hand in next time."""
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    if weights.linear is not None:
        config = weights.linear
        state = past if isinstance(past, CosformerState) else None
        state = state or CosformerState.empty(k, v.shape[-1], config.longest, config.normalize)
        return joined(state.step(q, k, v), weights.out_proj), state
    if isinstance(past, tuple):
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
    bias = None
    if weights.relative is not None:
        bias = relative_bias(q, weights.relative, k.shape[2], None, False, k.shape[2] - 1)
    return joined(F.scaled_dot_product_attention(q, k, v, bias), weights.out_proj), (k, v)


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


def cross_step(x: Tensor, memory: Past, weights: CrossAttentionWeights, mask: Tensor | None, position: int) -> Tensor:
    """The target's position ``position``, ``x`` (B, 1, C), reads the memory: (B, 1, C)."""
    (q,) = split_heads(F.linear(x, *weights.q_proj), 1, weights.heads)
    if isinstance(memory, CosformerState):
        return joined(memory.read(q, position), weights.out_proj)
    return attend(q, *memory, weights, mask)


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
