"""Elastic encoder and decoder layers.

A layer computes with weights handed to it and holds no state of the architecture: ``select`` gives the weights of one
architecture, ``forward`` takes them.
"""

from __future__ import annotations

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.forward import cross_attention, cross_step, self_attention, self_read, self_step
from nas_core.layers.attention.kinds import AttentionKind, AttentionState
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
    one_or_several,
    select_kind,
)
from nas_core.layers.attention.softmax import SOFTMAX
from nas_core.layers.feed_forward import ElasticFeedForward, FeedForwardWeights, feed_forward
from nas_core.layers.linear import ElasticLayerNorm
from nas_core.layers.mos import MoSConfig
from nas_core.layers.weights import NormWeights


class Dropouts(NamedTuple):
    """Probabilities in force: zero outside training."""

    residual: float = 0.0
    attention: float = 0.0
    activation: float = 0.0


class EncoderLayerWeights(NamedTuple):
    """The weights of one encoder layer for an architecture."""

    self_attn: SelfAttentionWeights
    self_attn_norm: NormWeights
    ffn: FeedForwardWeights
    ffn_norm: NormWeights


class DecoderLayerWeights(NamedTuple):
    """The weights of one decoder layer for an architecture."""

    self_attn: SelfAttentionWeights
    self_attn_norm: NormWeights
    cross_attn: CrossAttentionWeights
    cross_attn_norm: NormWeights
    ffn: FeedForwardWeights
    ffn_norm: NormWeights


def norm(x: Tensor, weights: NormWeights) -> Tensor:
    """Normalise the last dimension, as ``nn.LayerNorm`` does."""
    return F.layer_norm(x, weights.weight.shape, *weights)


class LayerForm(NamedTuple):
    """How the sublayers of a layer are put together."""

    norm_first: bool = False
    """Layer norm before each sublayer instead of after it."""
    activation: str = "relu"
    """Function of the hidden units, one of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    norm_eps: float = 1e-5
    """Added to the variance by layer norms."""


class AttentionConfig(NamedTuple):
    """The attentions that a layer may use, with their settings."""

    self_kinds: tuple[AttentionKind, ...] = (SOFTMAX,)
    cross_kinds: tuple[AttentionKind, ...] = (SOFTMAX,)
    relative: tuple[int, int] | None = None
    """Farthest distance and head dimension of relative positions, for kinds of self-attention that take them."""

    def self_attention(self, embed_dim: int, qkv_dim: int) -> nn.Module:
        """The projections of each kind of self-attention."""
        return one_or_several(
            self.self_kinds, lambda kind: ElasticSelfAttention(embed_dim, qkv_dim, kind, self.relative)
        )

    def cross_attention(self, embed_dim: int, memory_dim: int, qkv_dim: int) -> nn.Module:
        """The projections of each kind of encoder-decoder attention."""
        return one_or_several(
            self.cross_kinds, lambda kind: ElasticCrossAttention(embed_dim, memory_dim, qkv_dim, kind)
        )


class ElasticEncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and a layer norm (after it, or before).

    A ``causal`` layer, in which each position reads itself and earlier ones, is also the decoder layer of a language
    model, which has nothing else to read.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_dim: int,
        qkv_dim: int,
        features: int,
        mos: MoSConfig,
        form: LayerForm | None = None,
        attention: AttentionConfig | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__()
        form = form or LayerForm()
        self.norm_first, self.causal = form.norm_first, causal
        self.self_attn = (attention or AttentionConfig()).self_attention(embed_dim, qkv_dim)
        self.self_attn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)
        self.ffn = ElasticFeedForward(embed_dim, ffn_dim, features, mos, form.activation)
        self.ffn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)

    def select(
        self,
        embed_dim: int,
        ffn_dim: int,
        heads: int,
        encoding: Tensor | None,
        kind: str = "softmax",
        qkv_dim: int | None = None,
    ) -> EncoderLayerWeights:
        """The weights for these sizes; ``qkv_dim`` is the width of queries, keys and values, default the full one."""
        return EncoderLayerWeights(
            select_kind(self.self_attn, kind, embed_dim, heads, qkv_dim),
            self.self_attn_norm.select(embed_dim),
            self.ffn.select(embed_dim, ffn_dim, encoding),
            self.ffn_norm.select(embed_dim),
        )

    def forward(self, x: Tensor, weights: EncoderLayerWeights, mask: Tensor | None, drop: Dropouts) -> Tensor:
        """``x`` (B, S, C) to (B, S, C); ``mask`` (B, 1, 1, S) is True at tokens, None without padding."""
        first = self.norm_first
        y = norm(x, weights.self_attn_norm) if first else x
        y = self_attention(y, weights.self_attn, mask, drop.attention, self.causal)
        return self._transform(x, y, weights, drop)

    def read(self, x: Tensor, weights: EncoderLayerWeights) -> tuple[Tensor, AttentionState]:
        """The first positions of a causal layer: ``x`` (B, T, C) to (B, T, C), and what :meth:`step` takes for the
        next."""
        y, after = self_read(norm(x, weights.self_attn_norm) if self.norm_first else x, weights.self_attn)
        return self._transform(x, y, weights, Dropouts()), after

    def step(
        self, x: Tensor, weights: EncoderLayerWeights, past: AttentionState | None
    ) -> tuple[Tensor, AttentionState]:
        """The next position of a causal layer: ``x`` (B, 1, C) to (B, 1, C), and what of it to hand in as ``past`` next
        time."""
        y = norm(x, weights.self_attn_norm) if self.norm_first else x
        y, after = self_step(y, weights.self_attn, past)
        return self._transform(x, y, weights, Dropouts()), after

    def _transform(self, x: Tensor, read: Tensor, weights: EncoderLayerWeights, drop: Dropouts) -> Tensor:
        first = self.norm_first
        x = _residual(x, read, weights.self_attn_norm, drop, first)
        y = norm(x, weights.ffn_norm) if first else x
        return _residual(x, feed_forward(y, weights.ffn, drop.activation), weights.ffn_norm, drop, first)


class ElasticDecoderLayer(nn.Module):
    """Causal self-attention, encoder-decoder attention and feed-forward."""

    def __init__(
        self,
        embed_dim: int,
        memory_dim: int,
        ffn_dim: int,
        qkv_dim: int,
        features: int,
        mos: MoSConfig,
        form: LayerForm | None = None,
        attention: AttentionConfig | None = None,
        cross_qkv_dim: int | None = None,
    ) -> None:
        super().__init__()
        form, attention = form or LayerForm(), attention or AttentionConfig()
        self.norm_first = form.norm_first
        self.self_attn = attention.self_attention(embed_dim, qkv_dim)
        self.self_attn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)
        self.cross_attn = attention.cross_attention(embed_dim, memory_dim, cross_qkv_dim or qkv_dim)
        self.cross_attn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)
        self.ffn = ElasticFeedForward(embed_dim, ffn_dim, features, mos, form.activation)
        self.ffn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)

    def select(
        self,
        embed_dim: int,
        memory_dim: int,
        ffn_dim: int,
        self_heads: int,
        cross_heads: int,
        encoding: Tensor | None,
        self_kind: str = "softmax",
        cross_kind: str = "softmax",
        qkv_dims: tuple[int | None, int | None] = (None, None),
    ) -> DecoderLayerWeights:
        """The weights for these sizes; ``qkv_dims`` are the widths of queries, keys and values of self-attention and of
        that to the encoder, default the full ones."""
        return DecoderLayerWeights(
            select_kind(self.self_attn, self_kind, embed_dim, self_heads, qkv_dims[0]),
            self.self_attn_norm.select(embed_dim),
            select_kind(self.cross_attn, cross_kind, embed_dim, memory_dim, cross_heads, qkv_dims[1]),
            self.cross_attn_norm.select(embed_dim),
            self.ffn.select(embed_dim, ffn_dim, encoding),
            self.ffn_norm.select(embed_dim),
        )

    def forward(
        self,
        x: Tensor,
        weights: DecoderLayerWeights,
        memory: tuple[Tensor, Tensor],
        mask: Tensor | None,
        drop: Dropouts,
        positions: Tensor | None = None,
    ) -> Tensor:
        """All positions at once: ``x`` (B, T, C) to (B, T, C).

        ``memory`` are this layer's keys and values of the encoder's output; ``mask`` (B, 1, 1, S), True at its tokens;
        ``positions`` (B, S) of the tokens, for kinds that read them.
        """
        y = norm(x, weights.self_attn_norm) if self.norm_first else x
        y = self_attention(y, weights.self_attn, None, drop.attention, causal=True)
        x = _residual(x, y, weights.self_attn_norm, drop, self.norm_first)
        y = norm(x, weights.cross_attn_norm) if self.norm_first else x
        y = cross_attention(y, memory, weights.cross_attn, mask, drop.attention, positions)
        return self._transform(x, y, weights, drop)

    def step(
        self,
        x: Tensor,
        weights: DecoderLayerWeights,
        past: AttentionState | None,
        memory: AttentionState,
        mask: Tensor | None,
        position: int = 0,
    ) -> tuple[Tensor, AttentionState]:
        """Position ``position``: ``x`` (B, 1, C) to (B, 1, C), and what of it to hand in as ``past`` next time."""
        none = Dropouts()
        y = norm(x, weights.self_attn_norm) if self.norm_first else x
        y, past = self_step(y, weights.self_attn, past)
        x = _residual(x, y, weights.self_attn_norm, none, self.norm_first)
        y = norm(x, weights.cross_attn_norm) if self.norm_first else x
        y = cross_step(y, memory, weights.cross_attn, mask, position)
        return self._transform(x, y, weights, none), past

    def _transform(self, x: Tensor, read: Tensor, weights: DecoderLayerWeights, drop: Dropouts) -> Tensor:
        first = self.norm_first
        x = _residual(x, read, weights.cross_attn_norm, drop, first)
        y = norm(x, weights.ffn_norm) if first else x
        return _residual(x, feed_forward(y, weights.ffn, drop.activation), weights.ffn_norm, drop, first)


def _residual(x: Tensor, update: Tensor, weights: NormWeights, drop: Dropouts, norm_first: bool) -> Tensor:
    if drop.residual:
        update = F.dropout(update, drop.residual)
    x = x + update
    return x if norm_first else norm(x, weights)
