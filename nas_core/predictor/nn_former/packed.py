"""Graphs packed into one row of nodes, with relatives as pairs, at a cost that is linear in edges."""

from __future__ import annotations

from collections.abc import Sequence
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
from nas_core.predictor.nn_former.attend import plain_attention, scaled_mask
from nas_core.predictor.nn_former.config import NNFormerConfig

LARGEST = 60.0
"""Largest score whose exponentials float32 can sum a million times."""


@dataclass(frozen=True)
class Transposed:
    """The (row, column) pairs of a packed sparse matrix, sorted by column."""

    rows: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` first entry of each column"""
    order: Tensor
    """``(P,)`` index of each pair in row order"""


@dataclass(frozen=True)
class Pairs:
    """True entries of a matrix over T nodes, in row order."""

    rows: Tensor
    """``(P,)`` int64, ascending"""
    columns: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` first entry of each row"""
    transposed: Transposed | None = None

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device | str, trained: bool = True) -> Pairs:
        """Read a sparse matrix, with or without the part for gradients."""
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
        """Sum x ``(T, C)`` over the columns of each row: ``(T, C)``."""
        result: Tensor = _Sum.apply(x, self)  # type: ignore[no-untyped-call]
        return result

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
        """Apply softmax attention of one head from each row to its columns: ``(T, D)`` each -> ``(T, D)``."""
        result: Tensor = _Attention.apply(q, k, v, self, dropout)  # type: ignore[no-untyped-call]
        return result

    def row_sums(self, values: Tensor) -> Tensor:
        """Sum ``(P,)`` over the pairs of each row: ``(T,)``; no gradient."""
        return _bags(values[:, None], torch.arange(len(values), device=values.device), self.starts)[:, 0]

    def below_largest(self, scores: Tensor) -> Tensor:
        """Subtract each row's maximum from ``(P,)`` where exponentials would overflow float32."""
        if on_host(scores.device) and bool((scores.abs() < LARGEST).all()):
            return scores
        largest = scores.new_zeros(len(self.starts))
        largest.scatter_reduce_(0, self.rows, scores, "amax", include_self=False)  # exact in any order
        return scores - largest[self.rows]


def segment_sums(x: Tensor, starts: Tensor, owners: Tensor) -> Tensor:
    """Sum consecutive rows of ``(T, C)`` by segment: ``(B, C)``.

    Args:
        starts: ``(B,)`` first row of each segment.
        owners: ``(T,)`` segment of each row.
    """
    result: Tensor = _SegmentSums.apply(x, starts, owners)  # type: ignore[no-untyped-call]
    return result


def _bags(x: Tensor, columns: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return the weighted sums of x over columns ``starts[i]`` to ``starts[i + 1]``."""
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
        back = ctx.pairs.transposed
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
    """Attention over pairs, with scores and probabilities in float32."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, pairs: Pairs, dropout: float) -> Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        rows, columns = pairs.rows, pairs.columns
        scores = (q[rows] * k[columns]).sum(-1, dtype=torch.float32) * q.shape[-1] ** -0.5
        exponentials = pairs.below_largest(scores).exp()
        weights = exponentials / pairs.row_sums(exponentials)[rows]
        keep = scaled_mask(weights.shape, dropout, weights.dtype, weights.device) if dropout else None
        ctx.save_for_backward(q, k, v, weights, keep)
        ctx.pairs = pairs
        return _bags(v, columns, pairs.starts, (weights if keep is None else weights * keep).to(v.dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights, keep = ctx.saved_tensors
        pairs: Pairs = ctx.pairs
        assert pairs.transposed is not None
        back, rows, columns, grad = pairs.transposed, pairs.rows, pairs.columns, grads[0].contiguous()
        used = (weights if keep is None else weights * keep).to(v.dtype)
        of_v = _bags(grad, back.rows, back.starts, used[back.order])
        inner = (grad[rows] * v[columns]).sum(-1, dtype=torch.float32)
        if keep is not None:
            inner = inner * keep
        inner = inner * weights
        of_scores = (inner - weights * pairs.row_sums(inner)[rows]) * q.shape[-1] ** -0.5
        of_scores = of_scores.to(q.dtype)
        of_q = _bags(k, columns, pairs.starts, of_scores)
        of_k = _bags(q, back.rows, back.starts, of_scores[back.order])
        return of_q, of_k, of_v, None, None


PACKED_FROM = 64
"""Least mean number of nodes for packing."""


def packable(config: NNFormerConfig) -> bool:
    """Return whether the model supports packed graphs."""
    return config.readout != "class_token"


@dataclass(frozen=True)
class Matrices:
    """Relatives of the T nodes of packed graphs as sparse matrices; entries may repeat."""

    heads: tuple[csr_array, ...]
    """For each quarter of the heads, including the node; empty: all nodes of the graph"""
    splits: tuple[csr_array, ...]


def matrices_of(edges: NDArray[np.integer], nodes: int, config: NNFormerConfig) -> Matrices:
    """Return the relatives in the union of graphs with edges ``(E, 2)``."""
    ones = np.ones(len(edges), np.int32)
    forward = csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
    backward = csr_array(forward.T)
    itself = csr_array((np.ones(nodes, np.int32), (np.arange(nodes), np.arange(nodes))), shape=(nodes, nodes))
    siblings = config.attention == "siblings"
    kinds = (forward, backward, backward @ forward, forward @ backward) if siblings else ()
    splits = (forward, backward) if config.feed_forward == "bidirectional" else ()
    return Matrices(tuple(csr_array(kind + itself) for kind in kinds), splits)


@dataclass(frozen=True)
class PackedTopology:
    """Masks and sums of packed graphs, as :class:`Topology` for padded ones."""

    heads: tuple[Pairs, ...]
    splits: tuple[Pairs, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(
        cls,
        edges: NDArray[np.integer],
        sizes: Sequence[int],
        config: NNFormerConfig,
        device: torch.device | str = "cpu",
        trained: bool = True,
    ) -> PackedTopology:
        """Build the topology from edges ``(E, 2)`` of the union of all graphs.

        Args:
            sizes: nodes of each graph.
            trained: False: omit what only gradients need.
        """
        matrices = matrices_of(edges, sum(sizes), config)
        heads, splits = (
            tuple(Pairs.of(m, device, trained) for m in part) for part in (matrices.heads, matrices.splits)
        )
        return cls(heads, splits, tuple(sizes))

    def attend(self, projected: Tensor, heads: int, dropout: float) -> Tensor:
        """Attend ``(1, T, 3 C)`` -> ``(1, T, C)``."""
        split = projected[0].view(projected.shape[1], 3, heads, -1)
        if not self.heads:
            graphs = torch.split(split.permute(1, 2, 0, 3), list(self.sizes), 2)
            host = on_host(projected.device)
            attention = functional.scaled_dot_product_attention if host else plain_attention
            parts = [attention(q, k, v, None, dropout) for q, k, v in graphs]
            return torch.cat(parts, 1).transpose(0, 1).flatten(1)[None]
        outputs = []
        for head in range(heads):
            q, k, v = split[:, :, head].unbind(1)
            outputs.append(self.heads[head * len(self.heads) // heads].attend(q, k, v, dropout))
        return torch.cat(outputs, -1)[None]

    def sums(self, x: Tensor) -> tuple[Tensor, ...]:
        """Sum ``(1, T, C)`` over relatives, once per split."""
        return tuple(pairs.sum(x[0])[None] for pairs in self.splits)


@dataclass(frozen=True)
class PackedBatch:
    """B graphs with their T nodes in one row; fields as in :class:`Batch`, with 1 for B."""

    ops: Tensor
    """``(1, T)``"""
    edges: NDArray[np.int64] | None
    """``(E, 2)`` numbered over all nodes; None if the topology came with the batch"""
    sizes: Tensor
    """``(B,)``"""
    attributes: Tensor | None
    shapes: Tensor | None
    costs: Tensor | None
    static: Tensor | None
    """``(B, F)``"""
    lengths: tuple[int, ...] = ()
    """Sizes as host values"""
    largest: int = 0

    @classmethod
    def of(cls, graphs: Graphs, device: torch.device | str = "cpu") -> PackedBatch:
        def rows(values: NDArray[np.float32] | None) -> Tensor | None:
            return None if values is None else to_device(values, device)[None]

        return cls(
            to_device(graphs.ops.astype(np.int64), device)[None],
            numbered(graphs),
            to_device(graphs.sizes, device),
            rows(graphs.attributes),
            rows(graphs.shapes),
            rows(graphs.costs),
            None if graphs.static is None else to_device(graphs.static, device),
            tuple(graphs.sizes.tolist()),
            int(graphs.ops.max(initial=0)),
        )

    @property
    def most_nodes(self) -> int:
        return max(self.lengths, default=0)

    def total(self, nodes: Tensor) -> Tensor:
        """Sum over the nodes of each graph: ``(1, T, C)`` -> ``(B, C)``."""
        if on_host(nodes.device):
            return torch.stack([part.sum(0) for part in torch.split(nodes[0], list(self.lengths))])
        starts = self.sizes.cumsum(0) - self.sizes
        owners = torch.repeat_interleave(self.sizes, output_size=nodes.shape[1])
        return segment_sums(nodes[0], starts, owners)


def numbered(graphs: Graphs) -> NDArray[np.int64]:
    """Return edges ``(E, 2)`` with nodes numbered over all graphs."""
    first = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
    edges: NDArray[np.int64] = graphs.edges + np.repeat(first, graphs.edge_counts)[:, None]
    return edges


class _Spans:
    """Items of all graphs in one row."""

    def __init__(self, counts: NDArray[np.int64], device: torch.device) -> None:
        self.host_counts, self.counts = counts, to_device(counts, device)
        self.first = to_device(np.cumsum(counts) - counts, device)

    def of(self, rows: NDArray[np.int64], index: Tensor) -> tuple[Tensor, Tensor]:
        """Return positions ``(P,)`` of the items of those graphs, and their indices into ``rows (P,)``; no
        synchronisation.
        """
        total, counts = int(self.host_counts[rows].sum()), self.counts[index]
        owners = torch.repeat_interleave(counts, output_size=total)
        shifts = self.first[index] - (counts.cumsum(0) - counts)
        return torch.arange(total, device=index.device) + shifts[owners], owners


@dataclass(frozen=True)
class _Listed:
    """Pairs of one matrix over the nodes of all graphs, numbered per graph."""

    spans: _Spans
    columns: Tensor
    """``(P,)``"""
    of_row: Tensor
    """``(T,)`` number of pairs of each row"""
    order: Tensor
    """``(P,)`` pairs in column order"""
    of_column: Tensor
    """``(T,)`` number of pairs of each column"""

    @classmethod
    def of(cls, matrix: csr_array, sizes: NDArray[np.int64], device: torch.device) -> _Listed:
        matrix.sort_indices()
        ends = np.concatenate([[0], np.cumsum(sizes)])
        counts = np.diff(matrix.indptr[ends]).astype(np.int64)
        columns, order = matrix.indices, np.argsort(matrix.indices, kind="stable")
        owners, first_pair = np.repeat(np.arange(len(sizes)), counts), np.cumsum(counts) - counts

        def upload(array: NDArray[np.integer[Any]]) -> Tensor:
            largest = int(array.max(initial=0))
            return to_device(array.astype(np.int16 if largest < 2**15 else np.int32), device)

        return cls(
            _Spans(counts, device),
            upload(columns - ends[owners]),
            upload(np.diff(matrix.indptr)),
            upload(order - first_pair[owners]),
            upload(np.bincount(columns, minlength=matrix.shape[1])),
        )

    def take(self, rows: NDArray[np.int64], index: Tensor, nodes: Tensor, first: Tensor) -> Pairs:
        """Return the pairs of those graphs, with nodes ``(T,)`` and first nodes ``(B,)``."""
        positions, owners = self.spans.of(rows, index)
        total = len(positions)
        columns = self.columns[positions] + first[owners]
        of_row, of_column = self.of_row[nodes].long(), self.of_column[nodes].long()
        rows_ = torch.repeat_interleave(of_row, output_size=total)
        counts = self.spans.counts[index]
        order = self.order[positions] + (counts.cumsum(0) - counts)[owners]
        transposed = Transposed(rows_[order], of_column.cumsum(0) - of_column, order)
        return Pairs(rows_, columns, of_row.cumsum(0) - of_row, transposed)


class PackedSet:
    """Packed training graphs, all on the device."""

    def __init__(self, graphs: Graphs, matrices: Matrices, device: torch.device) -> None:
        self._sizes = graphs.sizes
        self._nodes = _Spans(graphs.sizes, device)
        self._largest = int(graphs.ops.max(initial=0))
        self._ops = to_device(graphs.ops, device)
        more = (graphs.attributes, graphs.shapes, graphs.costs, graphs.static)
        self._features = [None if values is None else to_device(values, device) for values in more]
        self._heads = [_Listed.of(matrix, graphs.sizes, device) for matrix in matrices.heads]
        self._splits = [_Listed.of(matrix, graphs.sizes, device) for matrix in matrices.splits]

    @classmethod
    def of(cls, graphs: Graphs, config: NNFormerConfig, device: torch.device) -> PackedSet:
        return cls(graphs, matrices_of(numbered(graphs), len(graphs.ops), config), device)

    def take(self, rows: NDArray[np.int64], index: Tensor) -> tuple[PackedBatch, PackedTopology]:
        """Return those graphs; ``rows`` and ``index`` are their numbers ``(B,)`` on the host and on the device."""
        nodes, _ = self._nodes.of(rows, index)
        sizes = self._nodes.counts[index]
        first = sizes.cumsum(0) - sizes
        lengths = tuple(self._sizes[rows].tolist())
        *of_nodes, static = self._features
        attributes, shapes, costs = (None if values is None else values[nodes][None] for values in of_nodes)
        chosen = None if static is None else static[index]
        ops = self._ops[nodes].long()[None]
        heads, splits = (
            [listed.take(rows, index, nodes, first) for listed in part] for part in (self._heads, self._splits)
        )
        topology = PackedTopology(tuple(heads), tuple(splits), lengths)
        batch = PackedBatch(ops, None, sizes, attributes, shapes, costs, chosen, lengths, self._largest)
        return batch, topology
