"""Elastic encoder and decoder layers. ``select`` returns the weights of an architecture for ``forward``."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.kinds import AttentionKind, AttentionState
from nas_core.layers.attention.projections import (
    CrossAttentionWeights,
    ElasticCrossAttention,
    ElasticSelfAttention,
    SelfAttentionWeights,
    build_kinds,
    cross_attention,
    cross_step,
    select_kind,
    self_attention,
    self_read,
    self_step,
)
from nas_core.layers.attention.softmax import SOFTMAX
from nas_core.layers.feed_forward import ElasticFeedForward, FeedForwardWeights, feed_forward
from nas_core.layers.linear import ElasticLayerNorm
from nas_core.layers.mos import MoSConfig
from nas_core.layers.weights import NormWeights


class Dropouts(NamedTuple):
    """Dropout probabilities of a layer, 0 outside training."""

    residual: float = 0.0
    attention: float = 0.0
    activation: float = 0.0

    @classmethod
    def of(cls, net: Any, scale: float = 1.0) -> Dropouts:
        """Return the current probabilities of a network. ``scale`` multiplies all except attention dropout."""
        config = net.config
        if not net.training:
            return cls()
        return cls(config.dropout * scale, config.attention_dropout, config.activation_dropout * scale)


class EncoderLayerWeights(NamedTuple):
    """Weights of an encoder or image layer for one architecture."""

    self_attn: SelfAttentionWeights
    self_attn_norm: NormWeights
    ffn: FeedForwardWeights
    ffn_norm: NormWeights


class DecoderLayerWeights(NamedTuple):
    """Weights of a decoder layer for one architecture."""

    self_attn: SelfAttentionWeights
    self_attn_norm: NormWeights
    cross_attn: CrossAttentionWeights
    cross_attn_norm: NormWeights
    ffn: FeedForwardWeights
    ffn_norm: NormWeights


def norm(x: Tensor, weights: NormWeights) -> Tensor:
    return F.layer_norm(x, weights.weight.shape, *weights)


class LayerForm(NamedTuple):
    """Structure of a transformer layer."""

    norm_first: bool = False
    """True for layer norm before each sublayer, False for after it."""
    activation: str = "relu"
    """One of :data:`nas_core.layers.feed_forward.ACTIVATIONS`."""
    norm_eps: float = 1e-5


class AttentionConfig(NamedTuple):
    """Attention mechanisms that a layer may use."""

    self_kinds: tuple[AttentionKind, ...] = (SOFTMAX,)
    cross_kinds: tuple[AttentionKind, ...] = (SOFTMAX,)
    relative: tuple[int, int] | None = None
    """Largest distance and head dimension of relative positions, for mechanisms that support them."""

    def self_attention(self, embed_dim: int, qkv_dim: int) -> nn.Module:
        return build_kinds(self.self_kinds, lambda kind: ElasticSelfAttention(embed_dim, qkv_dim, kind, self.relative))

    def cross_attention(self, embed_dim: int, memory_dim: int, qkv_dim: int) -> nn.Module:
        return build_kinds(self.cross_kinds, lambda kind: ElasticCrossAttention(embed_dim, memory_dim, qkv_dim, kind))


class ElasticLayer(nn.Module):
    """Base class of layers that start with self-attention and end with a feed-forward layer."""

    def __init__(self, form: LayerForm | None) -> None:
        super().__init__()
        self.form = form or LayerForm()
        self.norm_first = self.form.norm_first

    def _add_feed_forward(self, embed_dim: int, ffn_dim: int, features: int, mos: MoSConfig) -> None:
        self.ffn = ElasticFeedForward(embed_dim, ffn_dim, features, mos, self.form.activation)
        self.ffn_norm = ElasticLayerNorm(embed_dim, self.form.norm_eps)

    def _before(self, x: Tensor, weights: NormWeights) -> Tensor:
        return norm(x, weights) if self.norm_first else x

    def _after(self, x: Tensor, update: Tensor, weights: NormWeights, drop: Dropouts) -> Tensor:
        x = x + (F.dropout(update, drop.residual) if drop.residual else update)
        return x if self.norm_first else norm(x, weights)

    def _feed_forward(self, x: Tensor, ffn: FeedForwardWeights, weights: NormWeights, drop: Dropouts) -> Tensor:
        update = feed_forward(self._before(x, weights), ffn, drop.activation)
        return self._after(x, update, weights, drop)


class ElasticEncoderLayer(ElasticLayer):
    """Self-attention and feed-forward layer, each with a residual connection and a layer norm.

    With ``causal``, it is the decoder layer of a language model.
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
        super().__init__(form)
        self.causal = causal
        self.self_attn = (attention or AttentionConfig()).self_attention(embed_dim, qkv_dim)
        self.self_attn_norm = ElasticLayerNorm(embed_dim, self.form.norm_eps)
        self._add_feed_forward(embed_dim, ffn_dim, features, mos)

    def select(
        self,
        embed_dim: int,
        ffn_dim: int,
        heads: int,
        encoding: Tensor | None,
        kind: str = "softmax",
        qkv_dim: int | None = None,
    ) -> EncoderLayerWeights:
        return EncoderLayerWeights(
            select_kind(self.self_attn, kind, embed_dim, heads, qkv_dim),
            self.self_attn_norm.select(embed_dim),
            self.ffn.select(embed_dim, ffn_dim, encoding),
            self.ffn_norm.select(embed_dim),
        )

    def forward(self, x: Tensor, weights: EncoderLayerWeights, mask: Tensor | None, drop: Dropouts) -> Tensor:
        """Apply the layer to ``x`` ``(B, S, C)``. ``mask`` ``(B, 1, 1, S)`` is True at tokens."""
        y = self._before(x, weights.self_attn_norm)
        return self._after_attention(
            x, self_attention(y, weights.self_attn, mask, drop.attention, self.causal), weights, drop
        )

    def read(self, x: Tensor, weights: EncoderLayerWeights) -> tuple[Tensor, AttentionState]:
        y, state = self_read(self._before(x, weights.self_attn_norm), weights.self_attn)
        return self._after_attention(x, y, weights, Dropouts()), state

    def step(
        self, x: Tensor, weights: EncoderLayerWeights, past: AttentionState | None
    ) -> tuple[Tensor, AttentionState]:
        y, state = self_step(self._before(x, weights.self_attn_norm), weights.self_attn, past)
        return self._after_attention(x, y, weights, Dropouts()), state

    def _after_attention(self, x: Tensor, attended: Tensor, weights: EncoderLayerWeights, drop: Dropouts) -> Tensor:
        x = self._after(x, attended, weights.self_attn_norm, drop)
        return self._feed_forward(x, weights.ffn, weights.ffn_norm, drop)


class ElasticDecoderLayer(ElasticLayer):
    """Causal self-attention, encoder-decoder attention and feed-forward layer.

    Args:
        memory_dim: largest width of the encoder output.
        cross_qkv_dim: largest query width of encoder-decoder attention. Default: ``qkv_dim``.
    """

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
        super().__init__(form)
        attention = attention or AttentionConfig()
        self.self_attn = attention.self_attention(embed_dim, qkv_dim)
        self.self_attn_norm = ElasticLayerNorm(embed_dim, self.form.norm_eps)
        self.cross_attn = attention.cross_attention(embed_dim, memory_dim, cross_qkv_dim or qkv_dim)
        self.cross_attn_norm = ElasticLayerNorm(embed_dim, self.form.norm_eps)
        self._add_feed_forward(embed_dim, ffn_dim, features, mos)

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
        """Apply the layer to all positions ``x`` ``(B, T, C)``.

        Args:
            memory: keys and values of the encoder output.
            mask: ``(B, 1, 1, S)``, True at source tokens.
            positions: ``(B, S)`` of source tokens, for attention mechanisms that need them.
        """
        y = self._before(x, weights.self_attn_norm)
        y = self_attention(y, weights.self_attn, None, drop.attention, causal=True)
        x = self._after(x, y, weights.self_attn_norm, drop)
        y = self._before(x, weights.cross_attn_norm)
        y = cross_attention(y, memory, weights.cross_attn, mask, drop.attention, positions)
        x = self._after(x, y, weights.cross_attn_norm, drop)
        return self._feed_forward(x, weights.ffn, weights.ffn_norm, drop)

    def step(
        self,
        x: Tensor,
        weights: DecoderLayerWeights,
        past: AttentionState | None,
        memory: AttentionState,
        mask: Tensor | None,
        position: int = 0,
    ) -> tuple[Tensor, AttentionState]:
        no_dropout = Dropouts()
        y, state = self_step(self._before(x, weights.self_attn_norm), weights.self_attn, past)
        x = self._after(x, y, weights.self_attn_norm, no_dropout)
        y = cross_step(self._before(x, weights.cross_attn_norm), memory, weights.cross_attn, mask, position)
        x = self._after(x, y, weights.cross_attn_norm, no_dropout)
        return self._feed_forward(x, weights.ffn, weights.ffn_norm, no_dropout), state
