"""Masked softmax attention for very short sequences: a softmax over nine positions is slow as libraries do it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.predictor.dropout import keep_mask

__all__ = ["attend"]

SHORT = 32
"""Longest sequence on a CPU that takes the path of its own; longer ones fill vector registers by themselves."""
LARGEST = 80.0
"""Scores are clamped to +-this before the exponential, in place of subtracting each row's maximum."""


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v over the True positions of the mask.

    Args:
        query, key, value: ``(B, H, L, D)``.
        mask: ``(B, H, L, L)`` bool with at least one True in each row, or None for all True.
        dropout: of the probabilities.

    Returns:
        ``(B, H, L, D)``.
    """
    if query.device.type == "cpu" and query.shape[2] <= SHORT:
        with torch.autocast("cpu", enabled=False):
            mixed: Tensor = _Short.apply(query, key, value, mask, dropout)  # type: ignore[no-untyped-call]
        return mixed
    return functional.scaled_dot_product_attention(query, key, value, mask, dropout)


class _Short(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        kind, scale = query.dtype, query.shape[-1] ** -0.5
        q, k, v = query.float() * scale, key.float(), value.float()
        weights = torch.matmul(q, k.mT).clamp_(-LARGEST, LARGEST).exp_()
        if mask is not None:
            weights.mul_(mask)
        weights.div_(weights.sum(-1, keepdim=True))
        kept = None
        if dropout:
            kept = keep_mask(weights.shape, dropout, weights.dtype)
        ctx.save_for_backward(q, k, v, weights, kept)
        ctx.kind, ctx.scale = kind, scale
        return torch.matmul(weights if kept is None else weights * kept, v).to(kind)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept = ctx.saved_tensors
        grad = grads[0].float()
        grad_value = torch.matmul((weights if kept is None else weights * kept).mT, grad)
        inner = torch.matmul(grad, v.mT)
        if kept is not None:
            inner.mul_(kept)
        inner.mul_(weights)
        inner.addcmul_(weights, inner.sum(-1, keepdim=True), value=-1)
        grad_query = torch.matmul(inner, k).mul_(ctx.scale)
        grad_key = torch.matmul(inner.mT, q)
        kind = ctx.kind
        return grad_query.to(kind), grad_key.to(kind), grad_value.to(kind), None, None
