"""One block of the accuracy model with weights laid out for inference."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.predictor.nn_former.attend import short_softmax
from nas_core.predictor.nn_former.blocks import Block
from nas_core.predictor.nn_former.place import on_host
from nas_core.predictor.nn_former.product import Product

__all__ = ["FrozenBlock", "Summed", "seen"]

FEW = 8
"""Graphs up to which attention is torch's own: one call, where ours are twenty that take less time for many graphs."""


def seen(masks: Tensor | None, count: int) -> Tensor | None:
    """Boolean masks ``(B, H, L, L)`` as attention over so many graphs reads them: 0 and 1, or for torch's own what is
    added to the scores, in float32."""
    if masks is None or not _few(count, masks.device):
        return None if masks is None else masks.float()
    return torch.zeros(masks.shape).masked_fill_(~masks, float("-inf"))


def _few(count: int, device: torch.device) -> bool:
    return count <= FEW and on_host(device)


class Summed(Protocol):
    """Sums over relatives."""

    def sums(self, rows: Tensor) -> tuple[Tensor, ...]:
        """``(positions, C)`` -> sums over the children and over the parents of each, of that shape."""


class FrozenBlock:
    """Weights of a :class:`Block` without biases; later changes of the block are not seen.

    Args:
        block: of the accuracy model, with bidirectional or vanilla feed-forward.
        dtype: of what is multiplied.
        last: its feed-forward is asked about tokens alone, which have no relatives.
    """

    def __init__(self, block: Block, dtype: torch.dtype, last: bool) -> None:
        attention, ffn = block.attention, block.feed_forward
        dim = attention.out.weight.shape[0]
        self.heads, self.last = attention.heads, last
        scale = torch.ones(3 * dim, 1, device=attention.qkv.weight.device)
        scale[:dim] = (dim // self.heads) ** -0.5
        self.qkv = Product(attention.qkv.weight * scale, dtype)
        self.out = Product(attention.out.weight, dtype)
        parts = 1 if ffn.graph is None else 2
        hidden = ffn.up.weight.shape[0] // parts
        up = torch.split(ffn.up.weight, hidden)
        if ffn.graph is not None and not last:  # one product of what a node is and of what its relatives are
            up = tuple(torch.cat(pair, 1) for pair in zip(up, torch.split(ffn.graph.weight, hidden), strict=True))
        self.up = [Product(weight, dtype) for weight in up]
        self.down = [Product(weight, dtype) for weight in torch.split(ffn.down.weight, hidden, 1)]
        self.relatives = ffn.graph is not None and not last
        norms = (block.norm_attention, block.norm_feed_forward)
        self.norms = [(norm.normalized_shape, norm.weight.to(dtype), norm.bias.to(dtype), norm.eps) for norm in norms]

    def attention(self, x: Tensor, queries: int, masks: Tensor | None) -> Tensor:
        """``(B, L, C)`` -> ``(B, Q, C)`` of the first ``queries`` positions, the input added.

        Args:
            masks: ``(B, H, Q, L)``, as :func:`seen` gives them; None: queries look everywhere.
        """
        count, length, dim = x.shape
        projected = self.qkv(torch.layer_norm(x, *self.norms[0]).view(-1, dim)).view(count, length, 3, self.heads, -1)
        mixed = _mixed(projected, queries, masks)
        into = x if queries == length else x[:, :queries].contiguous()
        return self.out.added(mixed.view(-1, dim), into.view(-1, dim)).view(count, queries, dim)

    def feed_forward(self, x: Tensor, relatives: Summed | None) -> Tensor:
        """``(B, L, C)`` -> ``(B, L, C)``, the input added."""
        into = x.view(-1, x.shape[-1])
        rows = torch.layer_norm(into, *self.norms[1])
        inputs = [rows] * len(self.up)
        if self.relatives:
            assert relatives is not None
            inputs = [torch.cat([rows, sums], 1) for sums in relatives.sums(rows)]
        for part, up, down in zip(inputs, self.up, self.down, strict=True):
            into = down.added(up.relu(part), into)
        return into.view(x.shape)


def _mixed(projected: Tensor, queries: int, masks: Tensor | None) -> Tensor:
    """``(B, L, 3, H, D)`` -> ``(B, Q, H, D)``, for many graphs on copies of heads that stand one after another."""
    count, length, _, heads, channels = projected.shape
    if _few(count, projected.device):
        q, k, v = projected.float().permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q[:, :, :queries], k, v, masks, scale=1.0)
        return mixed.transpose(1, 2).to(projected.dtype).contiguous()
    made = torch.empty(3, count, heads, length, channels, device=projected.device)
    q, k, v = made.copy_(projected.permute(2, 0, 3, 1, 4)).view(3, count * heads, length, channels).unbind(0)
    mixed = torch.bmm(short_softmax(q[:, :queries], k, masks), v).view(count, heads, queries, channels)
    joined = torch.empty(count, queries, heads, channels, dtype=projected.dtype, device=projected.device)
    return joined.copy_(mixed.transpose(1, 2))
