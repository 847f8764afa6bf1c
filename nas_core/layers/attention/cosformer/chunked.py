"""Causal linear attention with all blocks at once: many small products in a few calls, as GPUs like it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.layers.attention.cosformer.normalize import working_dtype
from nas_core.layers.attention.cosformer.positions import Turns

__all__ = ["BLOCK", "chunked_sums"]

BLOCK = 128
"""Positions of a block: at twice the head dimension the work within and between blocks is equal."""


def chunked_sums(
    q: Tensor, k: Tensor, v: Tensor, query: Turns, key: Turns, mask: Tensor | None, max_length: int | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """``sum_j s_ij v_j`` ``(B, H, T, Dv)`` and ``sum_j s_ij`` ``(B, H, T, 1)``, in the working type. Memory for sums at
    the beginning of each block: ``2 D Dv / BLOCK`` numbers per position and head."""
    kind = working_dtype(q)
    queries, keys, values = torch.relu(q.to(kind)), torch.relu(k.to(kind)), v.to(kind)
    if mask is not None:
        keys = keys * mask[:, None, :, None]
    values = functional.pad(values, (0, 1), value=1.0)
    turned_q = torch.cat([queries * query.sin, queries * query.cos], -1)
    turned_k = torch.cat([keys * key.sin, keys * key.cos], -1)
    if not causal:
        sums = turned_q @ (turned_k.transpose(-1, -2) @ values)
        return sums[..., :-1], sums[..., -1:]
    assert max_length is not None
    length = q.shape[2]
    blocks = [_blocks(x, length) for x in (queries, keys, values, turned_q, turned_k)]
    queries, keys, values, turned_q, turned_k = blocks
    steps = torch.arange(BLOCK, device=q.device, dtype=torch.float64)
    within = torch.cos(math.pi / 2 / max_length * (steps[:, None] - steps)).tril().to(kind)
    gathered = turned_k.transpose(-1, -2) @ values
    # Moved by a block, not summed and subtracted: what rounds away of later values must not reach earlier outputs.
    before = functional.pad(gathered.cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0))
    sums = (queries @ keys.transpose(-1, -2) * within) @ values + turned_q @ before
    joined = sums.flatten(2, 3)[:, :, :length]
    return joined[..., :-1], joined[..., -1:]


def _blocks(x: Tensor, length: int) -> Tensor:
    """``(B, H, T, D)`` as ``(B, H, T / C, C, D)``, filled up with zeros."""
    padded = functional.pad(x, (0, 0, 0, -length % BLOCK))
    return padded.view(*x.shape[:2], -1, BLOCK, x.shape[-1])
