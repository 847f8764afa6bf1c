"""Linear attention by all pairs of positions in two batched products: for sequences so short that this is less work."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.layers.attention.cosformer.normalize import finished, working_dtype
from nas_core.layers.attention.cosformer.positions import Turns

__all__ = ["dense_attention"]


def dense_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query: Turns,
    key: Turns,
    mask: Tensor | None,
    causal: bool,
    normalize: str,
    eps: float,
) -> Tensor:
    """The attention's output ``(B, H, T, Dv)``; arguments as in ``cosformer_attention``.

    Halves are multiplied as they are. Queries are made smaller by a power of two before, and weights are divided before
    they meet the values, as in softmax attention, so that neither product nor its gradient leaves float16's range.
    """
    exact = working_dtype(q)
    smaller = 2.0 ** -q.shape[-1].bit_length()
    weights = ((torch.relu(q) * smaller) @ torch.relu(k).mT).to(exact)
    weights = weights * (query.sin * key.sin.mT + query.cos * key.cos.mT)
    if causal:
        weights = weights.tril()
    if mask is not None:
        weights = weights * mask[:, None, None]
    if normalize == "denominator":
        shares = weights / weights.sum(-1, keepdim=True).clamp(min=eps * smaller)
        return shares.to(q.dtype) @ v
    fewer = 1 / max(k.shape[2], 1)
    sums = ((weights * fewer).to(q.dtype) @ v).to(exact) / (smaller * fewer)
    return finished(sums, None, normalize, eps).to(q.dtype)
