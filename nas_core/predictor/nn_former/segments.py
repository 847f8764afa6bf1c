"""Sums over lists of pairs that come out the same each time, forwards and backwards, at a cost linear in the pairs.

``index_add_``, and the gradient of indexing, add on a CUDA device in the order in which threads arrive: the last bit
of a sum differs from run to run, and training carries it into every weight. Here each result is one bag of
``embedding_bag``, which one thread adds up in the order of the list. A gradient is such a sum too, over the list of the
transposed matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from nas_core.predictor.nn_former.dropout import scaled_mask
from nas_core.predictor.nn_former.place import on_host, uploaded

__all__ = ["Pairs", "Transposed", "segment_sums"]

LARGEST = 60.0
"""Scores whose exponentials, and sums of a million of them, float32 holds."""


@dataclass(frozen=True)
class Transposed:
    """The pairs of a matrix column by column."""

    rows: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` where the entries of a column begin"""
    order: Tensor
    """``(P,)`` which pair each is, counted row by row"""


@dataclass(frozen=True)
class Pairs:
    """True entries of a matrix over T nodes, row by row."""

    rows: Tensor
    """``(P,)`` int64, ascending"""
    columns: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` where the entries of a row begin"""
    transposed: Transposed | None = None
    """What gradients need"""

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device | str, trained: bool = True) -> Pairs:
        """From a sparse matrix.

        Args:
            trained: False: no gradients will be asked for.
        """
        matrix.sort_indices()
        columns, rows = matrix.indices, _rows_of(matrix)

        def there(array: NDArray[np.integer[Any]]) -> Tensor:
            return uploaded(np.asarray(array, np.int64), device)

        made = None
        if trained:
            order = np.argsort(columns, kind="stable")
            starts = np.searchsorted(columns[order], np.arange(matrix.shape[1]))
            made = Transposed(there(rows[order]), there(starts), there(order))
        return cls(there(rows), there(columns), there(matrix.indptr[:-1]), made)

    def sum(self, x: Tensor) -> Tensor:
        """Row i of the result is the sum of x at the columns of row i: ``(T, C)`` -> ``(T, C)``."""
        result: Tensor = _Sum.apply(x, self)  # type: ignore[no-untyped-call]
        return result

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
        """Softmax attention of one head, where row i looks at the columns of row i: each ``(T, D)`` -> ``(T, D)``."""
        result: Tensor = _Attention.apply(q, k, v, self, dropout)  # type: ignore[no-untyped-call]
        return result

    def row_sums(self, values: Tensor) -> Tensor:
        """Sums of ``(P,)`` over the pairs of each row: ``(T,)``; no gradient."""
        return _bags(values[:, None], torch.arange(len(values), device=values.device), self.starts)[:, 0]

    def below_largest(self, scores: Tensor) -> Tensor:
        """Scores ``(P,)``, minus the largest of their row where exponentials would leave float32's range."""
        if on_host(scores.device) and bool((scores.abs() < LARGEST).all()):
            return scores
        largest = scores.new_zeros(len(self.starts))
        largest.scatter_reduce_(0, self.rows, scores, "amax", include_self=False)  # exact in any order
        return scores - largest[self.rows]

    @property
    def backwards(self) -> Transposed:
        """The transposed list; an error of ours where it was left out."""
        assert self.transposed is not None, "a gradient of pairs that were made for inference"
        return self.transposed


def _rows_of(matrix: csr_array) -> NDArray[np.int64]:
    """The row of each entry of a sparse matrix."""
    rows: NDArray[np.int64] = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return rows


def segment_sums(x: Tensor, starts: Tensor, owners: Tensor) -> Tensor:
    """Sums over rows that stand together: ``(T, C)``, where each of the B parts begins ``(B,)``, and the part of each
    row ``(T,)`` -> ``(B, C)``."""
    result: Tensor = _SegmentSums.apply(x, starts, owners)  # type: ignore[no-untyped-call]
    return result


def _bags(x: Tensor, columns: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Row i is the sum of x at the columns from ``starts[i]`` to ``starts[i + 1]``, times the weights of these."""
    if not len(columns):
        return x.new_zeros(len(starts), x.shape[1])
    return functional.embedding_bag(columns, x, starts, mode="sum", per_sample_weights=weights)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Pairs) -> Tensor:
        ctx.pairs = pairs
        return _bags(x, pairs.columns, pairs.starts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        back = ctx.pairs.backwards
        return _bags(grads[0].contiguous(), back.rows, back.starts), None


class _SegmentSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, starts: Tensor, owners: Tensor) -> Tensor:
        ctx.save_for_backward(owners)
        return _bags(x, torch.arange(len(x), device=x.device), starts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (owners,) = ctx.saved_tensors
        return grads[0][owners], None, None


class _Attention(torch.autograd.Function):
    """Scores, softmax and probabilities in float32, one number for each pair."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pairs: Pairs, dropout: float) -> Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        rows, columns = pairs.rows, pairs.columns
        scores = (q[rows] * k[columns]).sum(-1, dtype=torch.float32) * q.shape[-1] ** -0.5
        exponentials = pairs.below_largest(scores).exp()
        weights = exponentials / pairs.row_sums(exponentials)[rows]
        kept = scaled_mask(weights.shape, dropout, weights.dtype, weights.device) if dropout else None
        ctx.save_for_backward(q, k, v, weights, kept)
        ctx.pairs = pairs
        return _bags(v, columns, pairs.starts, (weights if kept is None else weights * kept).to(v.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, kept = ctx.saved_tensors
        pairs: Pairs = ctx.pairs
        back, rows, columns, grad = pairs.backwards, pairs.rows, pairs.columns, grads[0].contiguous()
        used = (weights if kept is None else weights * kept).to(v.dtype)
        of_v = _bags(grad, back.rows, back.starts, used[back.order])
        inner = (grad[rows] * v[columns]).sum(-1, dtype=torch.float32)
        if kept is not None:
            inner = inner * kept
        inner = inner * weights
        of_scores = (inner - weights * pairs.row_sums(inner)[rows]) * q.shape[-1] ** -0.5
        of_scores = of_scores.to(q.dtype)
        of_q = _bags(k, columns, pairs.starts, of_scores)
        of_k = _bags(q, back.rows, back.starts, of_scores[back.order])
        return of_q, of_k, of_v, None, None
