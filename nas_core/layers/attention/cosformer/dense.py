"""Linear attention by all pairs of positions in two batched products: for sequences so short that this is less work."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.layers.attention.cosformer.normalize import finished, working_dtype
from nas_core.layers.attention.cosformer.positions import Turns
from nas_core.layers.attention.cosformer.products import multiplied_in, multiply_for


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

    Weights are divided before they meet the values, as in softmax attention, so that the product with values is one of
    halves. That of queries and keys is not one of float16: where no weight of a query is above 0 its gradient is
    divided by ``eps``, which leaves float16's range.
    """
    exact, kind, multiply = working_dtype(q), multiplied_in(q), multiply_for(q)
    smaller = 2.0 ** -q.shape[-1].bit_length()
    weights = multiply(torch.relu(q).to(kind) * smaller, torch.relu(k).to(kind).mT).to(exact)
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
