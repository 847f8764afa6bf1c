"""Training graphs that stay on the device: their relatives are found once, and batches are put together there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.packed import Matrices, PackedBatch, PackedTopology, matrices_of, numbered
from nas_core.predictor.nn_former.place import uploaded
from nas_core.predictor.nn_former.segments import Pairs, Transposed

__all__ = ["PackedSet"]


class _Spans:
    """Items of all graphs in one row, those of a graph together."""

    def __init__(self, counts: NDArray[np.int64], device: torch.device) -> None:
        self.host_counts, self.counts = counts, uploaded(counts, device)
        self.first = uploaded(np.cumsum(counts) - counts, device)

    def of(self, rows: NDArray[np.int64], index: Tensor) -> tuple[Tensor, Tensor]:
        """Positions ``(P,)`` of the items of those graphs, one graph after another, and the place ``(P,)`` that the
        graph of each has among them. How many they are is known without a look at the device."""
        total, counts = int(self.host_counts[rows].sum()), self.counts[index]
        owners = torch.repeat_interleave(counts, output_size=total)
        shifts = self.first[index] - (counts.cumsum(0) - counts)
        return torch.arange(total, device=index.device) + shifts[owners], owners


@dataclass(frozen=True)
class _Listed:
    """The pairs of one matrix over the nodes of all graphs; nodes and pairs are numbered from 0 in each graph."""

    spans: _Spans
    columns: Tensor
    """``(P,)``"""
    of_row: Tensor
    """``(T,)`` pairs of each row"""
    order: Tensor
    """``(P,)`` pairs column by column"""
    of_column: Tensor
    """``(T,)``"""

    @classmethod
    def of(cls, matrix: csr_array, sizes: NDArray[np.int64], device: torch.device) -> _Listed:
        matrix.sort_indices()
        ends = np.concatenate([[0], np.cumsum(sizes)])
        counts = np.diff(matrix.indptr[ends]).astype(np.int64)
        columns, order = matrix.indices, np.argsort(matrix.indices, kind="stable")
        owners, first_pair = np.repeat(np.arange(len(sizes)), counts), np.cumsum(counts) - counts

        def small(array: NDArray[np.integer[Any]]) -> Tensor:
            largest = int(array.max(initial=0))
            return uploaded(array.astype(np.int16 if largest < 2**15 else np.int32), device)

        return cls(
            _Spans(counts, device),
            small(columns - ends[owners]),
            small(np.diff(matrix.indptr)),
            small(order - first_pair[owners]),
            small(np.bincount(columns, minlength=matrix.shape[1])),
        )

    def take(self, rows: NDArray[np.int64], index: Tensor, nodes: Tensor, first: Tensor) -> Pairs:
        """Pairs of those graphs, whose nodes ``(T,)`` and whose first nodes ``(B,)`` are given."""
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
    """Packed graphs of a training, whole on its device.

    Args:
        matrices: relatives of the nodes of all graphs, which stand in one row.
    """

    def __init__(self, graphs: Graphs, matrices: Matrices, device: torch.device) -> None:
        self._sizes = graphs.sizes
        self._nodes = _Spans(graphs.sizes, device)
        self._largest = int(graphs.ops.max(initial=0))
        self._ops = uploaded(graphs.ops, device)
        more = (graphs.attributes, graphs.shapes, graphs.costs, graphs.static)
        self._features = [None if values is None else uploaded(values, device) for values in more]
        made: dict[int, _Listed] = {}
        for matrix in (*matrices.heads, *matrices.splits):
            if id(matrix) not in made:
                made[id(matrix)] = _Listed.of(matrix, graphs.sizes, device)
        self._heads = [made[id(matrix)] for matrix in matrices.heads]
        self._splits = [made[id(matrix)] for matrix in matrices.splits]

    @classmethod
    def of(cls, graphs: Graphs, config: NNFormerConfig, device: torch.device) -> PackedSet:
        """Graphs as NN-Former reads them.

        Raises:
            ConfigError: the model does not read packed graphs.
        """
        return cls(graphs, matrices_of(numbered(graphs), len(graphs.ops), config), device)

    def take(self, rows: NDArray[np.int64], index: Tensor) -> tuple[PackedBatch, PackedTopology]:
        """Those graphs; their numbers ``(B,)`` are given to the host and, the same ones, on the device."""
        nodes, _ = self._nodes.of(rows, index)
        sizes = self._nodes.counts[index]
        first = sizes.cumsum(0) - sizes
        lengths = tuple(self._sizes[rows].tolist())
        *of_nodes, static = self._features
        attributes, shapes, costs = (None if values is None else values[nodes][None] for values in of_nodes)
        chosen = None if static is None else static[index]
        ops = self._ops[nodes].long()[None]
        made: dict[int, Pairs] = {}

        def pairs(listed: _Listed) -> Pairs:
            if id(listed) not in made:
                made[id(listed)] = listed.take(rows, index, nodes, first)
            return made[id(listed)]

        topology = PackedTopology(tuple(map(pairs, self._heads)), tuple(map(pairs, self._splits)), lengths)
        batch = PackedBatch(ops, None, sizes, attributes, shapes, costs, chosen, lengths, self._largest)
        return batch, topology
