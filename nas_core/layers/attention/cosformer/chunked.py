"""Linear attention with all blocks at once: many small products in a few calls, as GPUs like it.

bfloat16 inputs are multiplied as they are, on tensor cores, which add up in float32. What is summed over the blocks,
the state of each head and the sums of weights, is float32 (a state in bfloat16 is off by up to 4 %); :mod:`products`
says what float16 does. The sums of weights are products of their own: a column of ones beside the values would make the
width odd, which tensor cores pay for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.layers.attention.cosformer.normalize import working_dtype
from nas_core.layers.attention.cosformer.positions import Turns
from nas_core.layers.attention.cosformer.products import multiplied_in, multiply_for, running_sums

BLOCK = 128
"""Positions of a block: at twice the head dimension the work within and between blocks is equal."""
_SUMMED = 512
"""Positions whose products bfloat16 keeps without float32 between them, where attention is not causal."""


def chunked_sums(
    q: Tensor, k: Tensor, v: Tensor, query: Turns, key: Turns, mask: Tensor | None, max_length: int | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """``sum_j s_ij v_j`` ``(B, H, T, Dv)`` and ``sum_j s_ij`` ``(B, H, T, 1)``, in the working type. Memory for sums at
    the beginning of each block: ``2 D Dv / BLOCK`` numbers per position and head."""
    kind = multiplied_in(q)
    queries, keys, values = torch.relu(q).to(kind), torch.relu(k).to(kind), v.to(kind)
    if mask is not None:
        keys = keys * mask[:, None, :, None]
    turned_q, turned_k = _turned(queries, query), _turned(keys, key)
    if not causal:
        return _all_keys(q, turned_q, turned_k, values)
    assert max_length is not None
    length, exact, multiply = q.shape[2], working_dtype(q), multiply_for(q)
    blocks = [_blocks(x, BLOCK) for x in (queries, keys, values, turned_q, turned_k)]
    queries, keys, values, turned_q, turned_k = blocks
    steps = torch.arange(BLOCK, device=q.device, dtype=torch.float64)
    within = torch.cos(math.pi / 2 / max_length * (steps[:, None] - steps)).tril().to(kind)
    near = multiply(queries, keys.transpose(-1, -2)) * within
    state = _before(multiply(turned_k.transpose(-1, -2), values), exact).to(kind)
    sums = multiply(near, values).to(exact) + multiply(turned_q, state)
    total = _before(turned_k.sum(-2, keepdim=True, dtype=exact), exact).to(kind)
    weights = near.sum(-1, keepdim=True, dtype=exact) + (turned_q * total).sum(-1, keepdim=True, dtype=exact)
    return sums.flatten(2, 3)[:, :, :length], weights.flatten(2, 3)[:, :, :length]


def _all_keys(q: Tensor, turned_q: Tensor, turned_k: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    kind, exact, multiply = turned_q.dtype, working_dtype(q), multiply_for(q)
    if kind == exact:
        state = multiply(turned_k.transpose(-1, -2), values)
    else:
        state = (
            multiply(_blocks(turned_k, _SUMMED).transpose(-1, -2), _blocks(values, _SUMMED))
            .sum(2, dtype=exact)
            .to(kind)
        )
    total = turned_k.sum(-2, keepdim=True, dtype=exact).to(kind)
    return multiply(turned_q, state).to(exact), (turned_q * total).sum(-1, keepdim=True, dtype=exact)


def _turned(x: Tensor, at: Turns) -> Tensor:
    """Features ``(B, H, T, 2D)``: x sin and x cos of the position."""
    return torch.cat([x * at.sin.to(x.dtype), x * at.cos.to(x.dtype)], -1)


def _before(each: Tensor, exact: torch.dtype) -> Tensor:
    """The sum of the blocks before each.

    Moved by a block, not summed and subtracted: what rounds away of later values must not reach earlier outputs.
    """
    return functional.pad(running_sums(each, 2, exact)[:, :, :-1], (0, 0, 0, 0, 1, 0))


def _blocks(x: Tensor, block: int) -> Tensor:
    """``(B, H, T, D)`` as ``(B, H, T / C, C, D)``, filled up with zeros."""
    padded = functional.pad(x, (0, 0, 0, -x.shape[2] % block))
    return padded.view(*x.shape[:2], -1, block, x.shape[-1])
