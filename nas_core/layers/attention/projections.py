"""Projections of multi-head attention of elastic width, the same for every kind: self-attention and cross-attention.

As in HAT, queries, keys and values have a width Q = H * D whatever the number of heads, so that the number of heads
changes no weight; where Q itself is searched, each of the three uses a prefix of its rows.

Shapes: B batch, T length, H heads, D head dim, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nas_core.layers.attention.kinds import AttentionKind
from nas_core.layers.attention.softmax import SOFTMAX
from nas_core.layers.linear import ElasticLinear, prefix
from nas_core.layers.weights import Affine

_FUSED_GAIN = 2**-0.5


class SelfAttentionWeights(NamedTuple):
    """Weights of the self-attention of one architecture's layer, and its kind."""

    in_proj: Affine
    """(3Q, C): queries, keys, values."""
    out_proj: Affine
    heads: int
    relative: Tensor | None = None
    """(2R + 1, D): vectors of distances, for kinds that take them."""
    kind: AttentionKind = SOFTMAX


class CrossAttentionWeights(NamedTuple):
    """Weights of the encoder-decoder attention of one architecture's layer, and its kind."""

    q_proj: Affine
    """(Q, C of the decoder)."""
    kv_proj: Affine
    """(2Q, C of the encoder): keys, values."""
    out_proj: Affine
    heads: int
    kind: AttentionKind = SOFTMAX


class ElasticSelfAttention(nn.Module):
    """Projections of self-attention.

    Args:
        kind: which computes with them.
        relative: R and D of a table of vectors for clipped distances, added to the keys; for kinds that take it.
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
        for part in self.in_proj.weight.detach().chunk(3):
            nn.init.xavier_uniform_(part, _FUSED_GAIN)

    def select(self, embed_dim: int, heads: int, qkv_dim: int | None = None) -> SelfAttentionWeights:
        """The weights for these sizes; ``qkv_dim`` is Q, default the full one."""
        used = self.qkv_dim if qkv_dim is None else qkv_dim
        in_proj = _first_rows(self.in_proj.select(embed_dim, 3 * self.qkv_dim), 3, used)
        out_proj = self.out_proj.select(used, embed_dim)
        relative = None if self.relative is None else prefix(self.relative, len(self.relative), used // heads)
        return SelfAttentionWeights(in_proj, out_proj, heads, relative, self.kind)


class ElasticCrossAttention(nn.Module):
    """Projections of encoder-decoder attention; the two sides may have different widths."""

    def __init__(self, embed_dim: int, memory_dim: int, qkv_dim: int, kind: AttentionKind = SOFTMAX) -> None:
        super().__init__()
        self.qkv_dim, self.kind = qkv_dim, kind
        self.q_proj = ElasticLinear(embed_dim, qkv_dim, _FUSED_GAIN)
        self.kv_proj = ElasticLinear(memory_dim, 2 * qkv_dim)
        self.out_proj = ElasticLinear(qkv_dim, embed_dim)
        for part in self.kv_proj.weight.detach().chunk(2):
            nn.init.xavier_uniform_(part, _FUSED_GAIN)

    def select(self, embed_dim: int, memory_dim: int, heads: int, qkv_dim: int | None = None) -> CrossAttentionWeights:
        """The weights for these sizes; ``qkv_dim`` is Q, default the full one."""
        used = self.qkv_dim if qkv_dim is None else qkv_dim
        return CrossAttentionWeights(
            self.q_proj.select(embed_dim, used),
            _first_rows(self.kv_proj.select(memory_dim, 2 * self.qkv_dim), 2, used),
            self.out_proj.select(used, embed_dim),
            heads,
            self.kind,
        )


def _first_rows(affine: Affine, parts: int, rows: int) -> Affine:
    """The first rows of each of the parts that stand one below the other."""
    if rows * parts == len(affine.bias):
        return affine
    return Affine(*(x.view(parts, -1, *x.shape[1:])[:, :rows].flatten(0, 1) for x in affine))


def one_or_several(kinds: Sequence[AttentionKind], make: Callable[[AttentionKind], nn.Module]) -> nn.Module:
    """The attention of that kind itself, or several of them by name; so a static subnet has no names of kinds in its
    parameters."""
    return make(kinds[0]) if len(kinds) == 1 else nn.ModuleDict({kind.name: make(kind) for kind in kinds})


def select_kind(attention: nn.Module, name: str, *sizes: Any) -> Any:
    """``select`` of the attention of the kind of that name."""
    chosen: Any = attention[name] if isinstance(attention, nn.ModuleDict) else attention
    return chosen.select(*sizes)


def split_heads(x: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """``(B, T, parts * H * D)`` as ``parts`` tensors ``(B, H, T, D)``."""
    batch, length, width = x.shape
    return x.view(batch, length, parts, heads, width // (parts * heads)).permute(2, 0, 3, 1, 4).unbind(0)


def joined(x: Tensor, out_proj: Affine) -> Tensor:
    """Heads ``(B, H, T, D)`` joined and projected: (B, T, C)."""
    return F.linear(x.transpose(1, 2).flatten(2), *out_proj)
