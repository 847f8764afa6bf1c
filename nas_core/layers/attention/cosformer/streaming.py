"""Linear attention in one pass over blocks of positions, with a custom backward pass.

As cos(a - b) = cos a cos b + sin a sin b, all keys and values are summed in one matrix per head (cosFormer, equation
11). A column of ones in the values sums the weights.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nas_core.layers.attention.cosformer.common import EPS, CosTable, working_dtype

CAUSAL_BLOCK, NONCAUSAL_BLOCK = 64, 256
"""Positions per block."""


class _Plan(NamedTuple):
    query: CosTable
    key: CosTable
    mask: Tensor | None  # (B, 1, S, 1), 1 at tokens
    causal: Tensor | None  # cosines within a block (C, C), 0 above the diagonal; None if not causal
    block: int

    def blocks(self, length: int) -> list[tuple[int, int]]:
        return [(start, min(start + self.block, length)) for start in range(0, length, self.block)]


def streaming_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query: CosTable,
    key: CosTable,
    mask: Tensor | None,
    max_length: int | None,
    causal: bool,
) -> Tensor:
    block = CAUSAL_BLOCK if causal else NONCAUSAL_BLOCK
    kind, cosines = working_dtype(q), None
    if causal:
        assert max_length is not None
        steps = torch.arange(block, device=q.device, dtype=torch.float64)
        cosines = torch.cos(math.pi / 2 / max_length * (steps[:, None] - steps)).tril().to(kind)
    weights = None if mask is None else mask[:, None, :, None].to(kind)
    streamed_attention: Tensor = _Streamed.apply(q, k, v, _Plan(query, key, weights, cosines, block))  # type: ignore[no-untyped-call]
    return streamed_attention


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: _Plan) -> Tensor:
        kind, (batch, heads, length, _) = working_dtype(q), q.shape
        outputs = torch.empty(batch, heads, length, v.shape[-1], dtype=q.dtype, device=q.device)
        weights = torch.empty(batch, heads, length, 1, dtype=kind, device=q.device)
        state, needs_grad, states = _empty_state(k, v), any(ctx.needs_input_grad), []
        if plan.causal is None:
            for start, stop in plan.blocks(k.shape[2]):
                features = _rotate(_keys(k, plan, start, stop), plan.key.block(start, stop))
                state.add_(features.mT @ _values(v, start, stop))
        for start, stop in plan.blocks(length):
            block = slice(start, stop)
            queries = torch.relu(q[:, :, block].to(kind))
            sums = _rotate(queries, plan.query.block(start, stop)) @ state
            if plan.causal is not None:
                keys, values = _keys(k, plan, start, stop), _values(v, start, stop)
                sums.add_((queries @ keys.mT).mul_(plan.causal[: stop - start, : stop - start]) @ values)
                if needs_grad:
                    states.append(state.clone())
                if stop < length:
                    state.add_(_rotate(keys, plan.key.block(start, stop)).mT @ values)
            weights[:, :, block] = sums[..., -1:]
            outputs[:, :, block] = sums[..., :-1].div_(sums[..., -1:].clamp_(min=EPS))
        ctx.plan = plan
        ctx.states = states if plan.causal is not None else [state]
        ctx.save_for_backward(q, k, v, outputs, weights)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, outputs, weights = ctx.saved_tensors
        backward = _causal_backward if ctx.plan.causal is not None else _noncausal_backward
        return (*backward(ctx.plan, ctx.states, q, k, v, _OutputGradients(grads[0], outputs, weights)), None)


class _OutputGradients:
    def __init__(self, grad_outputs: Tensor, outputs: Tensor, weights: Tensor) -> None:
        self.grad_outputs, self.outputs, self.weights = grad_outputs, outputs, weights

    def block(self, start: int, stop: int) -> Tensor:
        block = (slice(None), slice(None), slice(start, stop))
        grads = self.grad_outputs[block].to(working_dtype(self.grad_outputs))
        gradients = grads.new_empty(*grads.shape[:-1], grads.shape[-1] + 1)
        weights = self.weights[block]
        torch.div(grads, weights.clamp(min=EPS), out=gradients[..., :-1])
        grad_weights = (gradients[..., :-1] * self.outputs[block]).sum(-1, keepdim=True)
        gradients[..., -1:] = grad_weights.neg_().mul_(weights > EPS)
        return gradients


def _empty_state(k: Tensor, v: Tensor) -> Tensor:  # (B, H, 2D, Dv + 1)
    batch, heads, _, dim = k.shape
    return torch.zeros(batch, heads, 2 * dim, v.shape[-1] + 1, dtype=working_dtype(k), device=k.device)


def _keys(k: Tensor, plan: _Plan, start: int, stop: int) -> Tensor:
    keys = torch.relu(k[:, :, start:stop].to(working_dtype(k)))
    return keys if plan.mask is None else keys * plan.mask[:, :, start:stop]


def _values(v: Tensor, start: int, stop: int) -> Tensor:
    values = torch.ones(*v.shape[:2], stop - start, v.shape[-1] + 1, dtype=working_dtype(v), device=v.device)
    values[..., :-1] = v[:, :, start:stop]
    return values


def _rotate(x: Tensor, table: CosTable) -> Tensor:
    width = x.shape[-1]
    products = torch.empty(*x.shape[:-1], 2 * width, dtype=x.dtype, device=x.device)
    torch.mul(x, table.sin, out=products[..., :width])
    torch.mul(x, table.cos, out=products[..., width:])
    return products


def _rotate_back(grads: Tensor, table: CosTable) -> Tensor:
    first, second = grads.chunk(2, -1)
    return torch.addcmul(first * table.sin, second, table.cos)


def _noncausal_backward(
    plan: _Plan, states: list[Tensor], q: Tensor, k: Tensor, v: Tensor, incoming: _OutputGradients
) -> tuple[Tensor, Tensor, Tensor]:
    kind, grad_state = working_dtype(q), _empty_state(k, v)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    for start, stop in plan.blocks(q.shape[2]):
        block, table, grads = slice(start, stop), plan.query.block(start, stop), incoming.block(start, stop)
        queries = torch.relu(q[:, :, block].to(kind))
        grad_state.add_(_rotate(queries, table).mT @ grads)
        dq[:, :, block] = _rotate_back(grads @ states[0].mT, table).mul_(queries > 0)
    for start, stop in plan.blocks(k.shape[2]):
        block, table = slice(start, stop), plan.key.block(start, stop)
        keys, values = _keys(k, plan, start, stop), _values(v, start, stop)
        dv[:, :, block] = (_rotate(keys, table) @ grad_state)[..., :-1]
        dk[:, :, block] = _rotate_back(values @ grad_state.mT, table).mul_(keys > 0)
    return dq, dk, dv


def _causal_backward(
    plan: _Plan, states: list[Tensor], q: Tensor, k: Tensor, v: Tensor, incoming: _OutputGradients
) -> tuple[Tensor, Tensor, Tensor]:
    assert plan.causal is not None
    kind, grad_state = working_dtype(q), _empty_state(k, v)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    # In reverse: ``grad_state`` sums over the queries of later blocks.
    for (start, stop), state in zip(reversed(plan.blocks(q.shape[2])), reversed(states), strict=True):
        block, query, key = slice(start, stop), plan.query.block(start, stop), plan.key.block(start, stop)
        factors, grads = plan.causal[: stop - start, : stop - start], incoming.block(start, stop)
        queries, keys, values = (
            torch.relu(q[:, :, block].to(kind)),
            _keys(k, plan, start, stop),
            _values(v, start, stop),
        )
        grad_scores = (grads @ values.mT).mul_(factors)
        dq[:, :, block] = _rotate_back(grads @ state.mT, query).add_(grad_scores @ keys).mul_(queries > 0)
        dk[:, :, block] = _rotate_back(values @ grad_state.mT, key).add_(grad_scores.mT @ queries).mul_(keys > 0)
        masked_scores = (queries @ keys.mT).mul_(factors)
        dv[:, :, block] = (masked_scores.mT @ grads).add_(_rotate(keys, key) @ grad_state)[..., :-1]
        if start:
            grad_state.add_(_rotate(queries, query).mT @ grads)
    return dq, dk, dv
