"""Graphs packed into one row of nodes without padding, with attention over pairs of nodes (a sparse matrix)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from nas_core.graph import Graphs
from nas_core.predictor.device import on_host, to_device
from nas_core.predictor.nn_former.attend import scaled_mask
from nas_core.predictor.nn_former.config import NNFormerConfig

MAX_SCORE = 60.0  # maximum score; exponentials of larger ones might overflow in float32


@dataclass(frozen=True)
class Transposed:
    """Entries of :class:`Pairs`, sorted by column."""

    rows: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` first entry of each column"""
    order: Tensor
    """``(P,)`` index of each entry in :class:`Pairs`"""


@dataclass(frozen=True)
class Pairs:
    """P pairs of T nodes: the True entries of a sparse matrix, sorted by row."""

    rows: Tensor
    """``(P,)`` int64, ascending"""
    columns: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` first entry of each row"""
    transposed: Transposed | None = None

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device | str, trained: bool = True) -> Pairs:
        """Return the pairs of a sparse matrix; gradients need ``trained=True``."""
        matrix.sort_indices()
        columns, rows = matrix.indices, np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))

        def upload(array: NDArray[np.integer[Any]]) -> Tensor:
            return to_device(np.asarray(array, np.int64), device)

        transposed = None
        if trained:
            order = np.argsort(columns, kind="stable")
            starts = np.searchsorted(columns[order], np.arange(matrix.shape[1]))
            transposed = Transposed(upload(rows[order]), upload(starts), upload(order))
        return cls(upload(rows), upload(columns), upload(matrix.indptr[:-1]), transposed)

    def sum(self, x: Tensor) -> Tensor:
        """Return, for each row, the sum of x ``(T, C)`` over its columns: ``(T, C)``."""
        result: Tensor = _Sum.apply(x, self)  # type: ignore[no-untyped-call]
        return result

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
        """Return softmax attention ``(T, D)`` of one head, from each row to its columns."""
        result: Tensor = _Attention.apply(q, k, v, self, dropout)  # type: ignore[no-untyped-call]
        return result

    def row_sums(self, values: Tensor) -> Tensor:
        """Return the sums ``(T,)`` of values ``(P,)`` over the pairs of each row, without gradient."""
        return _bag_sums(values[:, None], torch.arange(len(values), device=values.device), self.starts)[:, 0]

    def subtract_max(self, scores: Tensor) -> Tensor:
        """Subtract the maximum of each row from scores ``(P,)`` if their exponentials would overflow."""
        if on_host(scores.device) and bool((scores.abs() < MAX_SCORE).all()):
            return scores
        largest = scores.new_zeros(len(self.starts))
        largest.scatter_reduce_(0, self.rows, scores, "amax", include_self=False)  # exact in any order
        return scores - largest[self.rows]


def _bag_sums(x: Tensor, columns: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    if not len(columns):
        return x.new_zeros(len(starts), x.shape[1])
    return functional.embedding_bag(columns, x, starts, mode="sum", per_sample_weights=weights)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: Pairs) -> Tensor:
        ctx.pairs = pairs
        return _bag_sums(x, pairs.columns, pairs.starts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        transposed = ctx.pairs.transposed
        return _bag_sums(grads[0].contiguous(), transposed.rows, transposed.starts), None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pairs: Pairs, dropout: float) -> Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        rows, columns = pairs.rows, pairs.columns
        scores = (q[rows] * k[columns]).sum(-1, dtype=torch.float32) * q.shape[-1] ** -0.5
        exponentials = pairs.subtract_max(scores).exp()
        weights = exponentials / pairs.row_sums(exponentials)[rows]
        keep = scaled_mask(weights.shape, dropout, weights.dtype, weights.device) if dropout else None
        ctx.save_for_backward(q, k, v, weights, keep)
        ctx.pairs = pairs
        return _bag_sums(v, columns, pairs.starts, (weights if keep is None else weights * keep).to(v.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, keep = ctx.saved_tensors
        pairs: Pairs = ctx.pairs
        assert pairs.transposed is not None
        transposed, rows, columns, grad = pairs.transposed, pairs.rows, pairs.columns, grads[0].contiguous()
        attention = (weights if keep is None else weights * keep).to(v.dtype)
        grad_v = _bag_sums(grad, transposed.rows, transposed.starts, attention[transposed.order])
        grad_weights = (grad[rows] * v[columns]).sum(-1, dtype=torch.float32)
        if keep is not None:
            grad_weights = grad_weights * keep
        grad_weights = grad_weights * weights
        grad_scores = (grad_weights - weights * pairs.row_sums(grad_weights)[rows]) * q.shape[-1] ** -0.5
        grad_scores = grad_scores.to(q.dtype)
        grad_q = _bag_sums(k, columns, pairs.starts, grad_scores)
        grad_k = _bag_sums(q, transposed.rows, transposed.starts, grad_scores[transposed.order])
        return grad_q, grad_k, grad_v, None, None


PACKED_FROM = 64  # minimum mean number of nodes for which graphs are packed


def packable(config: NNFormerConfig) -> bool:
    """Return True if a model with these settings supports packed graphs."""
    return config.readout != "class_token"


@dataclass(frozen=True)
class PackedTopology:
    """Attention masks and neighbour sums of packed graphs, as :class:`Topology` for padded graphs."""

    heads: tuple[Pairs, ...]
    """Attention mask of each quarter of the heads"""
    splits: tuple[Pairs, ...]
    """Children and parents"""

    @classmethod
    def of(
        cls, edges: NDArray[np.integer], nodes: int, device: torch.device | str = "cpu", trained: bool = True
    ) -> PackedTopology:
        """Return the topology of graphs with edges ``(E, 2)``, numbered over all graphs.

        Args:
            nodes: number of nodes of all graphs.
            trained: True if gradients are needed.
        """
        forward = sparse_ones(edges, (nodes, nodes))
        backward = csr_array(forward.T)
        identity = sparse_ones(np.arange(nodes)[:, None].repeat(2, 1), forward.shape)
        heads = (forward, backward, backward @ forward, forward @ backward)
        return cls(
            tuple(Pairs.of(csr_array(matrix + identity), device, trained) for matrix in heads),
            tuple(Pairs.of(matrix, device, trained) for matrix in (forward, backward)),
        )

    def attend(self, projected: Tensor, heads: int, dropout: float) -> Tensor:
        """Apply masked attention ``(1, T, 3 C)`` -> ``(1, T, C)``."""
        split = projected[0].view(projected.shape[1], 3, heads, -1)
        outputs = []
        for head in range(heads):
            q, k, v = split[:, :, head].unbind(1)
            outputs.append(self.heads[head * len(self.heads) // heads].attend(q, k, v, dropout))
        return torch.cat(outputs, -1)[None]

    def sums(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the sums of ``(1, T, C)`` over children and over parents."""
        return tuple(pairs.sum(x[0])[None] for pairs in self.splits)


@dataclass(frozen=True)
class PackedBatch:
    """B graphs with their T nodes in one row; node features have shape ``(1, T, ...)``."""

    ops: Tensor
    """``(1, T)``"""
    edges: NDArray[np.int64]
    """``(E, 2)`` nodes numbered over all graphs"""
    sizes: Tensor
    """``(B,)``"""
    attributes: Tensor | None
    shapes: Tensor | None
    costs: Tensor | None
    static: Tensor | None
    """``(B, F)``"""
    lengths: tuple[int, ...]
    """Number of nodes of each graph"""
    largest: int
    """Largest operation index"""
    graphs: Pairs | None
    """Nodes of each graph; None on the CPU"""

    @classmethod
    def of(cls, graphs: Graphs, device: torch.device | str = "cpu") -> PackedBatch:
        def rows(values: NDArray[np.float32] | None) -> Tensor | None:
            return None if values is None else to_device(values, device)[None]

        owners = np.stack([np.repeat(np.arange(len(graphs)), graphs.sizes), np.arange(len(graphs.ops))], 1)
        return cls(
            to_device(graphs.ops.astype(np.int64), device)[None],
            global_edges(graphs),
            to_device(graphs.sizes, device),
            rows(graphs.attributes),
            rows(graphs.shapes),
            rows(graphs.costs),
            None if graphs.static is None else to_device(graphs.static, device),
            tuple(graphs.sizes.tolist()),
            int(graphs.ops.max(initial=0)),
            None
            if on_host(torch.device(device))
            else Pairs.of(sparse_ones(owners, (len(graphs), len(owners))), device),
        )

    @property
    def most_nodes(self) -> int:
        return max(self.lengths, default=0)

    def total(self, nodes: Tensor) -> Tensor:
        """Sum over the nodes of each graph: ``(1, T, C)`` -> ``(B, C)``."""
        if self.graphs is None:
            return torch.stack([chunk.sum(0) for chunk in torch.split(nodes[0], list(self.lengths))])
        return self.graphs.sum(nodes[0])


def sparse_ones(indices: NDArray[np.integer], shape: tuple[int, int]) -> csr_array:
    """Return a sparse matrix with ones at rows and columns ``(P, 2)``."""
    return csr_array((np.ones(len(indices), np.int32), (indices[:, 0], indices[:, 1])), shape=shape)


def global_edges(graphs: Graphs) -> NDArray[np.int64]:
    """Return the edges ``(E, 2)`` of all graphs, with nodes numbered over all graphs."""
    first = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
    edges: NDArray[np.int64] = graphs.edges + np.repeat(first, graphs.edge_counts)[:, None]
    return edges
