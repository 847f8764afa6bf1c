"""Linear attention in one pass over blocks that stay in cache, with a backward pass of its own.

Two facts carry it. cos(a - b) = cos a cos b + sin a sin b makes a weight a product of features of the query and of
the key, so that keys and values of any number of positions are summed in one matrix per head (cosFormer, equation 11).
And between positions of one block the factor depends on i - j alone: one constant matrix weighs all blocks, without
features of twice the width. Forward keeps the sums at the beginning of each block; backward recomputes everything else.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nas_core.layers.cosformer.angles import Turns, working_dtype

__all__ = ["CAUSAL_BLOCK", "NONCAUSAL_BLOCK", "weighted_sums"]

CAUSAL_BLOCK, NONCAUSAL_BLOCK = 128, 256
"""Positions of a block."""


class _Plan(NamedTuple):
    """What the passes share beside tensors that need gradients."""

    query: Turns
    key: Turns
    mask: Tensor | None
    """``(B, 1, S, 1)`` of the working type"""
    causal: Tensor | None
    """``(C, C)``: factors within a block, 0 above the diagonal; None: all keys are read"""
    block: int

    def queries(self, length: int) -> list[tuple[int, int]]:
        return [(start, min(start + self.block, length)) for start in range(0, length, self.block)]


def weighted_sums(
    q: Tensor, k: Tensor, v: Tensor, query: Turns, key: Turns, mask: Tensor | None, max_length: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """``sum_j s_ij v_j`` ``(B, H, T, Dv)`` and ``sum_j s_ij`` ``(B, H, T, 1)``, in the working type."""
    block = CAUSAL_BLOCK if causal else NONCAUSAL_BLOCK
    kind = working_dtype(q)
    within = None
    if causal:
        steps = torch.arange(block, device=q.device, dtype=torch.float64)
        within = torch.cos(math.pi / 2 / max_length * (steps[:, None] - steps)).tril().to(kind)
    weights = None if mask is None else mask[:, None, :, None].to(kind)
    sums: tuple[Tensor, Tensor] = _Sums.apply(q, k, v, _Plan(query, key, weights, within, block))  # type: ignore[no-untyped-call]
    return sums


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: _Plan) -> tuple[Tensor, Tensor]:
        kind, (batch, heads, length, _) = working_dtype(q), q.shape
        sums = torch.empty(batch, heads, length, v.shape[-1], dtype=kind, device=q.device)
        weights = torch.empty(batch, heads, length, 1, dtype=kind, device=q.device)
        state = _empty_state(k, v)
        kept = any(ctx.needs_input_grad)
        states = []
        if plan.causal is None:
            for start, stop in plan.queries(k.shape[2]):
                keys, values = _keys(k, plan, start, stop), v[:, :, start:stop].to(kind)
                _add(state, _turned(keys, plan.key.block(start, stop)), values)
        for start, stop in plan.queries(length):
            here = slice(start, stop)
            queries = torch.relu(q[:, :, here].to(kind))
            turned = _turned(queries, plan.query.block(start, stop))
            inter = torch.matmul(turned, state[0]), torch.matmul(turned, state[1])
            if plan.causal is not None:
                keys, values = _keys(k, plan, start, stop), v[:, :, here].to(kind)
                among = torch.matmul(queries, keys.mT).mul_(plan.causal[: stop - start, : stop - start])
                inter[0].add_(torch.matmul(among, values))
                inter[1].add_(among.sum(-1, keepdim=True))
                if kept:
                    states.append((state[0].clone(), state[1].clone()))
                if stop < length:
                    _add(state, _turned(keys, plan.key.block(start, stop)), values)
            sums[:, :, here], weights[:, :, here] = inter
        ctx.plan = plan
        ctx.states = states if plan.causal is not None else [state]
        ctx.save_for_backward(q, k, v)
        return sums, weights

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        passes = _causal_backward if ctx.plan.causal is not None else _noncausal_backward
        return (*passes(ctx.plan, ctx.states, q, k, v, *grads), None)


State = tuple[Tensor, Tensor]
"""Sums over positions so far: of features times values ``(B, H, 2D, Dv)``, and of features ``(B, H, 2D, 1)``."""


def _empty_state(k: Tensor, v: Tensor) -> State:
    kind, (batch, heads, _, dim) = working_dtype(k), k.shape
    sums = torch.zeros(batch, heads, 2 * dim, v.shape[-1], dtype=kind, device=k.device)
    return sums, torch.zeros(batch, heads, 2 * dim, 1, dtype=kind, device=k.device)


def _keys(k: Tensor, plan: _Plan, start: int, stop: int) -> Tensor:
    keys = torch.relu(k[:, :, start:stop].to(working_dtype(k)))
    return keys if plan.mask is None else keys * plan.mask[:, :, start:stop]


def _turned(x: Tensor, at: Turns) -> Tensor:
    """Features ``(B, H, C, 2D)``: x sin and x cos of the position."""
    width = x.shape[-1]
    both = torch.empty(*x.shape[:-1], 2 * width, dtype=x.dtype, device=x.device)
    torch.mul(x, at.sin, out=both[..., :width])
    torch.mul(x, at.cos, out=both[..., width:])
    return both


def _add(state: State, features: Tensor, values: Tensor) -> None:
    state[0].add_(torch.matmul(features.mT, values))
    state[1].add_(features.sum(2).unsqueeze(-1))


def _turned_back(grads: Tensor, at: Turns, where: Tensor) -> Tensor:
    """Gradient of x from that of its features, 0 where relu cut x off; ``where`` is relu's output."""
    first, second = grads.chunk(2, -1)
    return torch.addcmul(first * at.sin, second, at.cos).mul_(where > 0)


def _noncausal_backward(
    plan: _Plan, states: list[State], q: Tensor, k: Tensor, v: Tensor, of_sums: Tensor, of_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    kind, (sums, weights) = working_dtype(q), states[0]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    back = _empty_state(k, v)
    for start, stop in plan.queries(q.shape[2]):
        here, at = slice(start, stop), plan.query.block(start, stop)
        queries, upper, lower = torch.relu(q[:, :, here].to(kind)), of_sums[:, :, here], of_weights[:, :, here]
        turned = _turned(queries, at)
        back[0].add_(torch.matmul(turned.mT, upper))
        back[1].add_(torch.matmul(turned.mT, lower))
        grads = torch.matmul(upper, sums.mT).addcmul_(lower, weights.mT)
        dq[:, :, here] = _turned_back(grads, at, queries)
    for start, stop in plan.queries(k.shape[2]):
        here, at = slice(start, stop), plan.key.block(start, stop)
        keys, values = _keys(k, plan, start, stop), v[:, :, here].to(kind)
        dv[:, :, here] = torch.matmul(_turned(keys, at), back[0])
        grads = torch.matmul(values, back[0].mT).add_(back[1].mT)
        dk[:, :, here] = _turned_back(grads, at, keys)
    return dq, dk, dv


def _causal_backward(
    plan: _Plan, states: list[State], q: Tensor, k: Tensor, v: Tensor, of_sums: Tensor, of_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """From the last block to the first; ``back`` sums over the queries of all later blocks."""
    assert plan.causal is not None
    kind = working_dtype(q)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    back = _empty_state(k, v)
    for (start, stop), (sums, weights) in zip(reversed(plan.queries(q.shape[2])), reversed(states), strict=True):
        here, query, key = slice(start, stop), plan.query.block(start, stop), plan.key.block(start, stop)
        factors = plan.causal[: stop - start, : stop - start]
        upper, lower = of_sums[:, :, here], of_weights[:, :, here]
        queries, keys, values = torch.relu(q[:, :, here].to(kind)), _keys(k, plan, start, stop), v[:, :, here].to(kind)
        grads = torch.matmul(upper, sums.mT).addcmul_(lower, weights.mT)
        among = torch.matmul(upper, values.mT).add_(lower).mul_(factors)
        dq[:, :, here] = _turned_back(grads, query, queries).add_(torch.matmul(among, keys).mul_(queries > 0))
        grads = torch.matmul(values, back[0].mT).add_(back[1].mT)
        dk[:, :, here] = _turned_back(grads, key, keys).add_(torch.matmul(among.mT, queries).mul_(keys > 0))
        weighed = torch.matmul(queries, keys.mT).mul_(factors)
        dv[:, :, here] = torch.matmul(weighed.mT, upper).add_(torch.matmul(_turned(keys, key), back[0]))
        if start:
            turned = _turned(queries, query)
            back[0].add_(torch.matmul(turned.mT, upper))
            back[1].add_(torch.matmul(turned.mT, lower))
    return dq, dk, dv
