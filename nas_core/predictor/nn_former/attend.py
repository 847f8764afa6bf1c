"""Masked softmax attention and dropout, faster than torch's for very short sequences."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.predictor.device import on_host

_BITS = {
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """Apply dropout; on a CPU the probability is rounded to a multiple of 1/256."""
    if not training or not probability:
        return x
    if x.device.type != "cpu":
        return functional.dropout(x, probability)
    return x * keep_mask(x.shape, probability, x.dtype)


def scaled_mask(shape: torch.Size, probability: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a dropout mask: 0 for dropped elements, 1 / (1 - probability) for others."""
    if device.type == "cpu":
        return keep_mask(shape, probability, dtype)
    return torch.empty(shape, dtype=dtype, device=device).bernoulli_(1 - probability).div_(1 - probability)


def keep_mask(shape: torch.Size, probability: float, dtype: torch.dtype) -> Tensor:
    """Return the mask of :func:`scaled_mask` on the CPU."""
    # computed on integers as wide as dtype, three times as fast as on bytes
    count, dropped, kind = shape.numel(), min(255, round(256 * probability)), _BITS[dtype]
    bytes_each = kind.itemsize
    words = math.ceil(count / bytes_each)
    random = (
        torch.empty(math.ceil(words * bytes_each / 8), dtype=torch.int64).random_(-(2**63), None).view(kind)[:words]
    )
    bits = torch.empty(bytes_each, words, dtype=kind)
    for byte, row in enumerate(bits):
        torch.bitwise_right_shift(random, 8 * byte, out=row)
    # A number shifted by all but its sign bit is all ones where it was negative, else 0.
    bits.bitwise_and_(255).sub_(dropped).bitwise_right_shift_(8 * bytes_each - 1).bitwise_not_()
    keep = bits.view(-1)[:count].view(shape)
    scale = _bits_of(256 / (256 - dropped), dtype)  # cached: reading a tensor waits for the device
    return keep.bitwise_and_(scale).view(dtype)


@functools.cache
def _bits_of(number: float, dtype: torch.dtype) -> int:
    return int(torch.tensor(number, dtype=dtype).view(_BITS[dtype]))


SHORT = 32  # maximum sequence length for _ShortAttention on a CPU
# minimum sum of exponentials; if it is smaller, the softmax is computed again with the maximum subtracted
MIN_SUM = 1e-30


def attend(projected: Tensor, heads: int, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """Return softmax(q kᵀ / sqrt(D)) v ``(B, L, C)``, over the True positions of a mask.

    Args:
        projected: ``(B, L, 3 C)`` queries, keys and values of all heads.
        mask: ``(B, H, L, L)`` bool with at least one True in each row.
        dropout: dropout probability of the attention weights.
    """
    batch, length, width = projected.shape
    split = projected.view(batch, length, 3, heads, -1)
    if on_host(projected.device) and length <= SHORT:
        with torch.autocast("cpu", enabled=False):
            mixed: Tensor = _ShortAttention.apply(split, mask, dropout)  # type: ignore[no-untyped-call]
        return mixed.view(batch, length, width // 3)
    query, key, value = split.permute(2, 0, 3, 1, 4)
    attention = functional.scaled_dot_product_attention if on_host(projected.device) else plain_attention
    mixed = attention(query, key, value, mask, dropout)
    return mixed.transpose(1, 2).reshape(batch, length, width // 3)


def plain_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float) -> Tensor:
    """Return softmax(q kᵀ / sqrt(D)) v of ``(..., L, D)``, with reproducible gradients on CUDA."""
    scores = ((query * query.shape[-1] ** -0.5) @ key.mT).masked_fill(~mask, float("-inf"))
    weights = functional.dropout(scores.softmax(-1, dtype=torch.float32), dropout, dropout > 0)
    mixed: Tensor = weights.to(value.dtype) @ value
    return mixed


def short_softmax(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """Return softmax(q kᵀ) ``(B H, S, T)`` of q ``(B H, S, D)`` and k ``(B H, T, D)``.

    Args:
        mask: ``(B, H, S, T)``, False or 0 where the result is 0.
    """
    scores = torch.bmm(q, k.mT)
    if on_host(q.device) and scores.numel():
        weights = scores.exp_()
        weights.view(mask.shape).mul_(mask)
        total = weights.sum(-1, keepdim=True)
        low, high = total.aminmax()
        if float(low) > MIN_SUM and float(high) < float("inf"):
            return weights.div_(total)
        scores = torch.bmm(q, k.mT)
    scores.view(mask.shape).masked_fill_(mask == 0, float("-inf"))
    return scores.softmax(-1)


class _ShortAttention(torch.autograd.Function):
    """Attention for short sequences: ``(B, L, 3, H, D)`` -> ``(B, L, H, D)`` in float32."""

    @staticmethod
    def forward(ctx: Any, split: Tensor, mask: Tensor, dropout: float) -> Tensor:
        batch, length, _, heads, channels = split.shape
        by_head = torch.empty(3, batch, heads, length, channels).copy_(split.permute(2, 0, 3, 1, 4))
        q, k, v = by_head.view(3, batch * heads, length, channels).unbind(0)
        q.mul_(channels**-0.5)
        weights = short_softmax(q, k, mask)
        keep = keep_mask(weights.shape, dropout, weights.dtype) if dropout else None
        mixed = torch.bmm(weights if keep is None else weights * keep, v)
        ctx.save_for_backward(q, k, v, weights, keep)
        ctx.shape, ctx.kind = split.shape, split.dtype
        output = torch.empty(batch, length, heads, channels, dtype=split.dtype)
        return output.copy_(mixed.view(batch, heads, length, channels).transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, keep = ctx.saved_tensors
        batch, length, _, heads, channels = ctx.shape
        grad = torch.empty(batch, heads, length, channels).copy_(grads[0].transpose(1, 2)).view_as(q)
        inner = torch.bmm(grad, v.mT)
        if keep is not None:
            inner.mul_(keep)
        inner.mul_(weights)
        inner.addcmul_(weights, inner.sum(-1, keepdim=True), value=-1)
        by_head = torch.empty(3, batch * heads, length, channels)
        torch.bmm(inner, k, out=by_head[0]).mul_(channels**-0.5)
        torch.bmm(inner.mT, q, out=by_head[1])
        torch.bmm((weights if keep is None else weights * keep).mT, grad, out=by_head[2])
        grad_split = torch.empty(ctx.shape, dtype=ctx.kind)
        grad_split.copy_(by_head.view(3, batch, heads, length, channels).permute(1, 3, 0, 2, 4))
        return grad_split, None, None
