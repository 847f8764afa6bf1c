"""Layers of an elastic vision transformer.

Shapes: B batch, N tokens, C channels, P patch size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.kinds import AttentionKind, resolve_kind
from nas_core.layers.attention.projections import SelfAttentionWeights, join_heads, self_attention, self_projections
from nas_core.layers.feed_forward import feed_forward
from nas_core.layers.linear import prefix
from nas_core.layers.mos import MoSConfig
from nas_core.layers.torch_modes import is_traced
from nas_core.layers.transformer import (
    AttentionConfig,
    Dropouts,
    ElasticEncoderLayer,
    EncoderLayerWeights,
    LayerForm,
    norm,
)
from nas_core.layers.weights import Affine


class ElasticPatchEmbedding(nn.Module):
    """Convolution that maps non-overlapping patches to tokens.

    It is initialised for standardised pixels and tokens of variance ``1 / C``.
    """

    def __init__(self, channels: int, embed_dim: int, patch_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(embed_dim, channels, patch_size, patch_size))
        self.bias = nn.Parameter(torch.zeros(embed_dim))
        nn.init.normal_(self.weight, std=(channels * patch_size**2 * embed_dim) ** -0.5)

    def select(self, embed_dim: int) -> Affine:
        return Affine(prefix(self.weight, embed_dim), prefix(self.bias, embed_dim))


class ElasticVisionLayer(ElasticEncoderLayer):
    """Pre-norm self-attention and feed-forward layer with residual connections.

    Hooks of ``attn_drop`` get the attention matrix of each pass, as timm's ``AttentionExtract`` expects.

    Args:
        attention: attention mechanisms that an architecture may choose, by name or with settings.
        relative: largest distance and head dimension of relative positions, for mechanisms that support them.
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
        kinds = AttentionConfig(tuple(resolve_kind(kind, "image") for kind in attention), relative=relative)
        super().__init__(embed_dim, ffn_dim, qkv_dim, features, mos, form or LayerForm(norm_first=True), kinds)
        self.attn_drop = nn.Identity()

    def forward(  # type: ignore[override]
        self, x: Tensor, weights: EncoderLayerWeights, drop: Dropouts, path: float = 0.0
    ) -> Tensor:
        """Apply the layer to ``x`` ``(B, N, C)``. ``path`` is the probability of skipping a sublayer for an image."""
        y = norm(x, weights.self_attn_norm)
        if self.attn_drop._forward_hooks or self.attn_drop._forward_pre_hooks:
            self.attn_drop(attention_weights(y, weights.self_attn))
        if is_traced():  # exporters take plain products, as fused attention has another memory layout
            projected = self_projections(y, weights.self_attn)
            y = join_heads(
                weights.self_attn.kind.plain(*projected, weights.self_attn.relative), weights.self_attn.out_proj
            )
        else:
            y = self_attention(y, weights.self_attn, None, drop.attention)
        x = x + drop_path(_dropout(y, drop.residual), path)
        y = feed_forward(norm(x, weights.ffn_norm), weights.ffn, drop.activation)
        return x + drop_path(_dropout(y, drop.residual), path)


def attention_weights(x: Tensor, weights: SelfAttentionWeights) -> Tensor:
    """Return the attention matrix ``(B, H, N, N)`` of ``x`` ``(B, N, C)``, without dropout."""
    q, k, _ = self_projections(x, weights)
    return weights.kind.weights(q, k, weights.relative)


def _dropout(x: Tensor, probability: float) -> Tensor:
    return F.dropout(x, probability) if probability else x


def drop_path(x: Tensor, probability: float) -> Tensor:
    """Zero random rows of ``x`` ``(B, ..)`` and scale the others (Huang et al. 2016, stochastic depth)."""
    if not probability:
        return x
    keep = torch.rand(x.shape[0], *[1] * (x.ndim - 1), device=x.device) >= probability
    return x * (keep.to(x.dtype) / (1 - probability))


def resize_positions(table: Tensor, old: tuple[int, int], new: tuple[int, int], antialias: bool = False) -> Tensor:
    """Interpolate position embeddings ``(old rows * columns, C)`` to another grid: ``(new rows * columns, C)``.

    Args:
        antialias: use antialiasing for enlarging, as in timm. Shrinking always uses it.
    """
    if old == new:
        return table
    image = table.float().view(*old, -1).permute(2, 0, 1)[None]
    shrinking = new[0] < old[0] or new[1] < old[1]
    resized = F.interpolate(image, new, mode="bicubic", align_corners=False, antialias=antialias or shrinking)
    return resized[0].permute(1, 2, 0).flatten(0, 1).to(table.dtype)
