"""Parts of an elastic image transformer: patches to tokens, positions on a grid, and a layer with drop path.

Shapes: B batch, N tokens, C channels, P patch size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.forward import self_attention
from nas_core.layers.attention.kinds import AttentionKind, exporting, placed
from nas_core.layers.attention.projections import (
    ElasticSelfAttention,
    SelfAttentionWeights,
    joined,
    one_or_several,
    select_kind,
    split_heads,
)
from nas_core.layers.feed_forward import ElasticFeedForward, FeedForwardWeights, feed_forward
from nas_core.layers.linear import ElasticLayerNorm, prefix
from nas_core.layers.mos import MoSConfig
from nas_core.layers.transformer import Dropouts, LayerForm, norm
from nas_core.layers.weights import Affine, NormWeights


class VisionLayerWeights(NamedTuple):
    """The weights of one layer for an architecture."""

    self_attn: SelfAttentionWeights
    self_attn_norm: NormWeights
    ffn: FeedForwardWeights
    ffn_norm: NormWeights


class ElasticPatchEmbedding(nn.Module):
    """Non-overlapping patches as tokens: one convolution with a stride of its own size.

    Weights start such that standardised pixels give tokens of variance 1 after the network's factor sqrt(C).
    """

    def __init__(self, channels: int, embed_dim: int, patch_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(embed_dim, channels, patch_size, patch_size))
        self.bias = nn.Parameter(torch.zeros(embed_dim))
        nn.init.normal_(self.weight, std=(channels * patch_size**2 * embed_dim) ** -0.5)

    def select(self, embed_dim: int) -> Affine:
        """Weight ``(embed_dim, channels, P, P)`` and bias ``(embed_dim,)``."""
        return Affine(prefix(self.weight, embed_dim), prefix(self.bias, embed_dim))


class ElasticVisionLayer(nn.Module):
    """Self-attention and feed-forward, each after a layer norm and with a residual connection.

    Args:
        attention: the kinds that an architecture may choose from, by name or with settings; all are scaled by the
            number of tokens. Several have separate weights, under their names; of a single one the parameters have no
            such name, so that a static subnet is this class too.
        relative: farthest distance and head dimension of relative positions, for kinds that take them.

    ``attn_drop`` is for hooks alone: where there are any, they see the :func:`attention_weights` of each pass, which
    fused and linear attention never hold otherwise. timm's ``AttentionExtract`` looks for it by this name.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_dim: int,
        qkv_dim: int,
        features: int,
        mos: MoSConfig,
        attention: Sequence[str | AttentionKind] = ("softmax",),
        relative: tuple[int, int] | None = None,
        form: LayerForm | None = None,
    ) -> None:
        super().__init__()
        form = form or LayerForm(norm_first=True)
        self.self_attn = one_or_several(
            [placed(kind, "image") for kind in attention],
            lambda kind: ElasticSelfAttention(embed_dim, qkv_dim, kind, relative),
        )
        self.self_attn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)
        self.ffn = ElasticFeedForward(embed_dim, ffn_dim, features, mos, form.activation)
        self.ffn_norm = ElasticLayerNorm(embed_dim, form.norm_eps)
        self.attn_drop = nn.Identity()

    def select(
        self, embed_dim: int, ffn_dim: int, heads: int, qkv_dim: int, kind: str, encoding: Tensor | None
    ) -> VisionLayerWeights:
        return VisionLayerWeights(
            select_kind(self.self_attn, kind, embed_dim, heads, qkv_dim),
            self.self_attn_norm.select(embed_dim),
            self.ffn.select(embed_dim, ffn_dim, encoding),
            self.ffn_norm.select(embed_dim),
        )

    def forward(self, x: Tensor, weights: VisionLayerWeights, drop: Dropouts, path: float = 0.0) -> Tensor:
        """``x`` (B, N, C) to (B, N, C); ``path`` is the probability that a sublayer is skipped for an image.

        Linear attention reads each pair by the share of the sequence that lies between them (M = N), so that larger
        images, whose positions are interpolated, keep their weights. Unlike in the authors' code it is not causal.
        """
        y = norm(x, weights.self_attn_norm)
        if self.attn_drop._forward_hooks or self.attn_drop._forward_pre_hooks:
            self.attn_drop(attention_weights(y, weights.self_attn))
        y = _attention(y, weights.self_attn, drop.attention)
        x = x + drop_path(_dropped(y, drop.residual), path)
        y = feed_forward(norm(x, weights.ffn_norm), weights.ffn, drop.activation)
        return x + drop_path(_dropped(y, drop.residual), path)


def _attention(x: Tensor, weights: SelfAttentionWeights, dropout: float) -> Tensor:
    """Self-attention in the form that suits the moment: exporters know no autograd function of ours, and lay out the
    result of fused attention in another order than the CPU does."""
    if not exporting():
        return self_attention(x, weights, None, dropout)
    q, k, v = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return joined(weights.kind.plain(q, k, v, weights.relative), weights.out_proj)


def attention_weights(x: Tensor, weights: SelfAttentionWeights) -> Tensor:
    """How much each token reads of each other, without dropout: ``x`` (B, N, C) to (B, H, N, N), whose rows sum to
    1."""
    q, k, _ = split_heads(F.linear(x, *weights.in_proj), 3, weights.heads)
    return weights.kind.weights(q, k, weights.relative)


def _dropped(x: Tensor, probability: float) -> Tensor:
    return F.dropout(x, probability) if probability else x


def drop_path(x: Tensor, probability: float) -> Tensor:
    """``x`` (B, ..) with whole rows set to 0 and the others scaled up (Huang et al. 2016, "Deep Networks with
    Stochastic Depth")."""
    if not probability:
        return x
    kept = torch.rand(x.shape[0], *[1] * (x.ndim - 1), device=x.device) >= probability
    return x * (kept.to(x.dtype) / (1 - probability))


def resize_positions(table: Tensor, old: tuple[int, int], new: tuple[int, int], antialias: bool = False) -> Tensor:
    """Position embeddings ``(old rows * columns, C)`` interpolated to another grid: ``(new rows * columns, C)``.

    ``antialias``: by the smoother cubic of image libraries also where the grid grows, as timm does.
    """
    if old == new:
        return table
    image = table.float().view(*old, -1).permute(2, 0, 1)[None]
    shrinks = new[0] < old[0] or new[1] < old[1]
    resized = F.interpolate(image, new, mode="bicubic", align_corners=False, antialias=antialias or shrinks)
    return resized[0].permute(1, 2, 0).flatten(0, 1).to(table.dtype)
