"""Implementations of linear attention: equal results, different speed and memory.

Shapes: B batch, H heads, T/S query and key length, D head dim.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from nas_core.errors import ConfigError, check_choice
from nas_core.layers.attention.cosformer.common import (
    EPS,
    CosTable,
    check,
    cos_table,
    sequence_scale,
    working_dtype,
)
from nas_core.layers.attention.cosformer.streaming import streaming_attention
from nas_core.layers.torch_modes import is_exporting, without_autocast

FORMS = ("auto", "streaming", "chunked", "dense")
"""Implementations of linear attention.

- ``streaming``: one block of positions at a time, with little memory.
- ``chunked``: all blocks at once.
- ``dense``: all pairs of positions, for short sequences.
- ``auto``: selected by :func:`chosen_form`.
"""
BLOCK = 128
"""Positions per block of ``chunked``."""
# Positions per bfloat16 product of non-causal attention. Products are added in float32.
_SUM_BLOCK = 512


def cosformer_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    max_length: int | None,
    causal: bool = False,
    key_mask: Tensor | None = None,
    query_positions: Tensor | None = None,
    key_positions: Tensor | None = None,
    form: str = "auto",
) -> Tensor:
    """Compute linear attention with cosine reweighting (Qin et al. 2022, "cosFormer: Rethinking Softmax in Attention").

    ``o_i = sum_j s_ij v_j / max(sum_j s_ij, EPS)``, ``s_ij = relu(q_i) relu(k_j)ᵀ cos(pi/2 (i - j) / M)``. Time is
    linear in the length. M is constant, so weights are the same in training and decoding, unlike in the authors' code.

    Args:
        q: queries ``(B, H, T, D)``.
        k: keys ``(B, H, S, D)``.
        v: values ``(B, H, S, Dv)``.
        max_length: M, at least T and S. None uses each sequence's number of tokens (non-causal self-attention only).
        causal: mask later keys. Requires T = S.
        key_mask: ``(B, S)`` bool, True at tokens.
        query_positions: ``(T,)`` or ``(B, T)``, below ``max_length``. Default: 0, 1, .. Not supported with ``causal``.
        key_positions: ``(S,)`` or ``(B, S)``, below ``max_length``.
        form: one of :data:`FORMS`.

    Returns:
        ``(B, H, T, Dv)`` in the dtype of ``q``. Sums of 16-bit inputs are computed in float32.

    Raises:
        ConfigError: shapes do not match, or a sequence exceeds ``max_length``.
    """
    check_choice("form of linear attention", form, FORMS)
    check(q, k, v, max_length, causal, key_mask, (query_positions, key_positions))
    if causal and (query_positions is not None or key_positions is not None):
        raise ConfigError("query_positions and key_positions are not supported with causal=True; remove them")
    exporting = is_exporting() or torch.onnx.is_in_onnx_export()
    if form == "auto":
        form = chosen_form(q.device.type, q.shape[2], k.shape[2], q.shape[3], exporting)
    if form == "streaming" and (exporting or torch.compiler.is_compiling()):
        form = "chunked"  # neither supports a custom autograd function
    length_is_symbolic = isinstance(q.shape[2], torch.SymInt)
    if exporting and causal and length_is_symbolic:
        form = "dense"  # exporters cannot prove a number of blocks for every length
    dtype = working_dtype(q)
    if max_length is None:
        query = key = cos_table(*sequence_scale(k, key_mask), dtype)
    else:
        query = cos_table(_positions(query_positions, q), max_length, dtype)
        key = cos_table(_positions(key_positions, k), max_length, dtype)
    with without_autocast(q):
        if form == "streaming":
            return streaming_attention(q, k, v, query, key, key_mask, max_length, causal)
        if form == "dense":
            return dense_attention(q, k, v, query, key, key_mask, causal)
        sums, weights = chunked_sums(q, k, v, query, key, key_mask, max_length, causal)
        return (sums / weights.clamp(min=EPS)).to(q.dtype)


def _positions(positions: Tensor | None, x: Tensor) -> Tensor:
    return torch.arange(x.shape[2], device=x.device) if positions is None else positions


def chosen_form(device_type: str, queries: int, keys: int, head_dim: int, exporting: bool) -> str:
    """Return the implementation that ``auto`` selects.

    - ``chunked`` if exporting.
    - ``streaming`` without CUDA.
    - ``dense`` if it is less work: ``T * S <= 2 * D * (T + S)``.
    - ``chunked`` otherwise.
    """
    if exporting:  # exporters do not support custom autograd functions
        return "chunked"
    if device_type != "cuda":
        return "streaming"
    return "dense" if queries * keys <= 2 * head_dim * (queries + keys) else "chunked"


# -- dense -------------------------------------------------------------------------------------------------------------


def dense_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query: CosTable,
    key: CosTable,
    mask: Tensor | None,
    causal: bool,
) -> Tensor:
    exact, dtype = working_dtype(q), factor_dtype(q)
    factor = 2.0 ** -q.shape[-1].bit_length()
    # Not a float16 product: its gradient is divided by up to eps.
    weights = torch.matmul(torch.relu(q).to(dtype) * factor, torch.relu(k).to(dtype).mT).to(exact)
    weights = weights * (query.sin * key.sin.mT + query.cos * key.cos.mT)
    if causal:
        weights = weights.tril()
    if mask is not None:
        weights = weights * mask[:, None, None]
    shares = weights / weights.sum(-1, keepdim=True).clamp(min=EPS * factor)
    return shares.to(q.dtype) @ v


# -- chunked -----------------------------------------------------------------------------------------------------------


def chunked_sums(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query: CosTable,
    key: CosTable,
    mask: Tensor | None,
    max_length: int | None,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """Compute ``sum_j s_ij v_j`` ``(B, H, T, Dv)`` and ``sum_j s_ij`` ``(B, H, T, 1)``, all blocks at once.

    Memory: ``2 D Dv / BLOCK`` elements per position and head.
    """
    dtype = factor_dtype(q)
    queries, keys, values = torch.relu(q).to(dtype), _masked(torch.relu(k).to(dtype), mask), v.to(dtype)
    rotated_q, rotated_k = _features(queries, query), _features(keys, key)
    if not causal:
        return _all_keys(q, rotated_q, rotated_k, values)
    assert max_length is not None
    length, exact = q.shape[2], working_dtype(q)
    blocks = [_blocks(x, BLOCK) for x in (queries, keys, values, rotated_q, rotated_k)]
    queries, keys, values, rotated_q, rotated_k = blocks
    steps = torch.arange(BLOCK, device=q.device, dtype=torch.float64)
    cosines = torch.cos(math.pi / 2 / max_length * (steps[:, None] - steps)).tril().to(dtype)
    block_weights = torch.matmul(queries, keys.transpose(-1, -2)) * cosines
    # Blocks are summed in float32: a bfloat16 state is off by up to 4 %.
    state = _cumulative_before(torch.matmul(rotated_k.transpose(-1, -2), values), exact).to(dtype)
    sums = torch.matmul(block_weights, values).to(exact) + torch.matmul(rotated_q, state)
    total = _cumulative_before(rotated_k.sum(-2, keepdim=True, dtype=exact), exact).to(dtype)
    weights = block_weights.sum(-1, keepdim=True, dtype=exact) + (rotated_q * total).sum(-1, keepdim=True, dtype=exact)
    return sums.flatten(2, 3)[:, :, :length], weights.flatten(2, 3)[:, :, :length]


def _all_keys(q: Tensor, rotated_q: Tensor, rotated_k: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    dtype, exact = rotated_q.dtype, working_dtype(q)
    if dtype == exact:
        state = torch.matmul(rotated_k.transpose(-1, -2), values)
    else:
        products = torch.matmul(_blocks(rotated_k, _SUM_BLOCK).transpose(-1, -2), _blocks(values, _SUM_BLOCK))
        state = products.sum(2, dtype=exact).to(dtype)
    total = rotated_k.sum(-2, keepdim=True, dtype=exact).to(dtype)
    return torch.matmul(rotated_q, state).to(exact), (rotated_q * total).sum(-1, keepdim=True, dtype=exact)


def _masked(keys: Tensor, mask: Tensor | None) -> Tensor:
    return keys if mask is None else keys * mask[:, None, :, None]


def _features(x: Tensor, table: CosTable) -> Tensor:
    return torch.cat([x * table.sin.to(x.dtype), x * table.cos.to(x.dtype)], -1)


def _cumulative_before(blocks: Tensor, exact: torch.dtype) -> Tensor:
    # Without subtraction: rounding errors of later values must not reach earlier outputs.
    # cumsum(dtype=) accumulates gradients in the input's dtype; on CUDA, a bfloat16 sum of ones stops at 256.
    return functional.pad(blocks.to(exact).cumsum(2)[:, :, :-1], (0, 0, 0, 0, 1, 0))


def _blocks(x: Tensor, block: int) -> Tensor:
    padded = functional.pad(x, (0, 0, 0, -x.shape[2] % block))
    return padded.view(*x.shape[:2], -1, block, x.shape[-1])


# -- products of 16-bit numbers ----------------------------------------------------------------------------------------


def factor_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of matrix products: bfloat16 or float64 for such inputs, otherwise float32."""
    return torch.bfloat16 if x.dtype == torch.bfloat16 else working_dtype(x)
