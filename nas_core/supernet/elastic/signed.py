"""A better start for attention that sees no more of queries and keys than their positive parts.

Shapes: B batch, T/S length of queries and keys, D head dim, C channels, Q = H * D.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nas_core.layers.attention.projections import SelfAttentionWeights
from nas_core.layers.weights import Affine
from nas_core.supernet.elastic.recorded import AttentionWeights, Recorded

_LEAST = 1e-6
"""Added to variances, over their mean: directions that no input has."""


def signed_pairs(weights: AttentionWeights, recorded: Sequence[Recorded]) -> None:
    """Turn the queries and keys of each head such that their positive parts keep what matters most of the products.

    ``relu(q) relu(k)`` loses every product of channels of which one is negative. Of each head, the D/2 directions that
    carry most of the trained scores on the data become channels (the singular vectors of the bilinear form, weighed by
    the second moments of queries and keys), and their negatives the other D/2: ``relu(a) relu(b) + relu(-a) relu(-b)``
    is ``a b`` wherever that is positive, which is where softmax looks.

    Args:
        weights: as copied from the trained attention; queries and keys change in place, values and output stay.
        recorded: what the trained attention read.
    """
    queries, keys = _queries_and_keys(weights)
    width = len(queries.bias) // weights.heads
    with torch.no_grad():
        read = _moments([each.x[each.counted] for each in recorded])
        memory = read if recorded[0].memory is None else _moments([_memory(each) for each in recorded])
        for head in range(weights.heads):
            rows = slice(head * width, (head + 1) * width)
            q, k = (torch.cat([each.weight[rows], each.bias[rows, None]], 1).double() for each in (queries, keys))
            root_q, root_k = _root(q @ read @ q.T), _root(k @ memory @ k.T)
            left, strength, right = torch.linalg.svd(root_q.T @ root_k)
            q = strength.sqrt()[:, None] * (left.T @ torch.linalg.solve(root_q, q))
            k = strength.sqrt()[:, None] * (right @ torch.linalg.solve(root_k, k))
            for each, value in ((queries, _with_negatives(q)), (keys, _with_negatives(k))):
                each.weight[rows] = value[:, :-1].to(each.weight.dtype)
                each.bias[rows] = value[:, -1].to(each.bias.dtype)


def _queries_and_keys(weights: AttentionWeights) -> tuple[Affine, Affine]:
    """Their rows of the projections, as views."""
    if isinstance(weights, SelfAttentionWeights):
        parts = [tensor.detach().chunk(3) for tensor in weights.in_proj]
        return Affine(parts[0][0], parts[1][0]), Affine(parts[0][1], parts[1][1])
    keys = Affine(*(tensor.detach().chunk(2)[0] for tensor in weights.kv_proj))
    return Affine(*(tensor.detach() for tensor in weights.q_proj)), keys


def _memory(recorded: Recorded) -> Tensor:
    """The positions (N, C) of another sequence that may be read."""
    assert recorded.memory is not None
    return recorded.memory.flatten(0, 1) if recorded.mask is None else recorded.memory[recorded.mask[:, 0, 0]]


def _moments(inputs: Sequence[Tensor]) -> Tensor:
    """Second moments (C + 1, C + 1) of inputs (N, C) with a one behind each, for the bias."""
    ones = (torch.nn.functional.pad(each.double(), (0, 1), value=1.0) for each in inputs)
    total = torch.stack([each.T @ each for each in ones]).sum(0)
    moments: Tensor = total / total[-1, -1].clamp(min=1.0)
    return moments


def _root(moments: Tensor) -> Tensor:
    """The lower triangle whose product with its transpose they are."""
    least = _LEAST * moments.diagonal().mean() + 1e-30
    root: Tensor = torch.linalg.cholesky(
        moments + least * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)
    )
    return root


def _with_negatives(rows: Tensor) -> Tensor:
    """The first half of the rows (D, ..), each with its negative; of an odd number also the one behind them."""
    half = len(rows) // 2
    return torch.cat([rows[:half], -rows[:half], rows[half : half + len(rows) % 2]])
