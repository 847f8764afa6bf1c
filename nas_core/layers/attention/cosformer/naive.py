"""cosFormer as its equations stand: all pairs of positions, in float32. The reference of every other form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nas_core.layers.attention.cosformer.checks import check
from nas_core.layers.attention.cosformer.normalize import EPS, finished, working_dtype
from nas_core.layers.attention.cosformer.positions import own_scale


def cosformer_naive(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    max_length: int | None,
    causal: bool = False,
    key_mask: Tensor | None = None,
    query_positions: Tensor | None = None,
    key_positions: Tensor | None = None,
    normalize: str = "denominator",
    eps: float = EPS,
) -> Tensor:
    """``s_ij = relu(q_i) relu(k_j)ᵀ cos(pi/2 (i - j) / M)`` (Qin et al. 2022, "cosFormer", equation 9), outputs
    ``sum_j s_ij v_j / max(sum_j s_ij, eps)``. Arguments as in :func:`cosformer_attention`."""
    check(q, k, v, max_length, causal, key_mask, normalize, (query_positions, key_positions))
    kind = working_dtype(q)
    i = torch.arange(q.shape[2], device=q.device) if query_positions is None else query_positions
    j = torch.arange(k.shape[2], device=q.device) if key_positions is None else key_positions
    scale: int | Tensor | None = max_length
    if scale is None:
        i, scale = own_scale(k, key_mask)
        j = i
    apart = (i[..., :, None] - j[..., None, :]).double()
    longest = scale.double()[..., None] if isinstance(scale, Tensor) else scale
    reweighed = torch.cos(math.pi / 2 / longest * apart).to(kind)
    weights = torch.relu(q.to(kind)) @ torch.relu(k.to(kind)).mT
    weights = weights * (reweighed[:, None] if reweighed.ndim == 3 else reweighed)
    if causal:
        weights = weights.tril()
    if key_mask is not None:
        weights = weights * key_mask[:, None, None]
    return finished(weights @ v.to(kind), weights.sum(-1, keepdim=True), normalize, eps).to(q.dtype)
