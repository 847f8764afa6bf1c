"""Many large graphs as one: nodes of all graphs in one row, relatives as lists of pairs, so that cost grows with the
number of edges and not with the square of the number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from nas_core.errors import ConfigError
from nas_core.graph import Graphs
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.dropout import dropout as drop

__all__ = ["PackedBatch", "PackedTopology", "Pairs", "packable"]

PACKED_FROM = 64
"""Mean number of nodes from which graphs are packed, where their model can."""
_ATTENTION = ("siblings", "global", "forward", "backward", "both", "two_hop")
_FEED_FORWARD = ("bidirectional", "vanilla", "forward", "backward")

LARGEST = 60.0
"""Scores whose exponentials, and sums of a million of them, float32 holds."""


def packable(config: NNFormerConfig) -> bool:
    """Whether such a model reads packed graphs."""
    summed = config.readout != "class_token" and config.position == "none"
    return summed and config.attention in _ATTENTION and config.feed_forward in _FEED_FORWARD


@dataclass(frozen=True)
class Pairs:
    """True entries of a matrix over T nodes, row by row."""

    rows: Tensor
    """``(P,)`` int64, ascending"""
    columns: Tensor
    """``(P,)`` int64"""
    starts: Tensor
    """``(T,)`` where the entries of a row begin"""

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device | str) -> Pairs:
        matrix.sort_indices()
        counts = np.diff(matrix.indptr)
        rows = np.repeat(np.arange(matrix.shape[0]), counts)
        arrays = (rows, matrix.indices, matrix.indptr[:-1])
        return cls(*(torch.from_numpy(np.asarray(x, np.int64)).to(device) for x in arrays))

    def sum(self, x: Tensor) -> Tensor:
        """Row i of the result is the sum of x at the columns of row i: ``(T, C)`` -> ``(T, C)``."""
        return torch.zeros_like(x).index_add_(0, self.rows, x[self.columns])

    def below_largest(self, scores: Tensor) -> Tensor:
        """Scores ``(P,)``, minus the largest of their row where exponentials would leave float32's range."""
        if scores.device.type == "cpu" and bool((scores.detach().abs() < LARGEST).all()):
            return scores
        largest = scores.new_zeros(len(self.starts))
        largest.scatter_reduce_(0, self.rows, scores.detach(), "amax", include_self=False)
        return scores - largest[self.rows]


@dataclass(frozen=True)
class PackedTopology:
    """What :class:`~nas_core.predictor.nn_former.batch.Topology` holds, for packed graphs."""

    heads: tuple[Pairs, ...]
    """Relatives seen by each quarter of the heads, the node itself included; none: all nodes of the graph"""
    splits: tuple[Pairs, ...]
    """Relatives summed by each split of the feed-forward"""
    sizes: tuple[int, ...]
    """Nodes of each graph"""

    @classmethod
    def of(
        cls,
        edges: NDArray[np.integer],
        sizes: Sequence[int],
        config: NNFormerConfig,
        device: torch.device | str = "cpu",
    ) -> PackedTopology:
        """From the edges ``(E, 2)`` of the union of all graphs, and how many nodes each has."""
        nodes = sum(sizes)
        if config.attention not in _ATTENTION or config.feed_forward not in _FEED_FORWARD:
            raise ConfigError(
                f"attention {config.attention!r} with feed-forward {config.feed_forward!r} has no packed form;"
                " use dense batches"
            )
        ones = np.ones(len(edges), np.int32)
        forward = csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes))
        backward = csr_array(forward.T)
        itself = csr_array((np.ones(nodes, np.int32), (np.arange(nodes), np.arange(nodes))), shape=(nodes, nodes))
        choices: dict[str, Callable[[], tuple[csr_array, ...]]] = {
            "global": lambda: (),
            "siblings": lambda: (forward, backward, backward @ forward, forward @ backward),
            "two_hop": lambda: (forward, backward, forward @ forward, backward @ backward),
            "forward": lambda: (forward,) * 4,
            "backward": lambda: (backward,) * 4,
            "both": lambda: (forward, forward, backward, backward),
        }
        kinds = choices[config.attention]()
        made: dict[int, Pairs] = {}
        heads = tuple(made.setdefault(id(k), Pairs.of(csr_array(k + itself), device)) for k in kinds)
        down, up = Pairs.of(forward, device), Pairs.of(backward, device)
        splits = {"bidirectional": (down, up), "forward": (down,), "backward": (up,), "vanilla": ()}
        return cls(heads, splits[config.feed_forward], tuple(sizes))

    def attend(self, projected: Tensor, heads: int, dropout: float) -> Tensor:
        """``(1, T, 3 C)`` -> ``(1, T, C)``."""
        split = projected[0].view(projected.shape[1], 3, heads, -1)
        if not self.heads:
            graphs = torch.split(split.permute(1, 2, 0, 3), list(self.sizes), 2)
            parts = [functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout) for q, k, v in graphs]
            return torch.cat(parts, 1).transpose(0, 1).flatten(1)[None]
        outputs = []
        for head in range(heads):
            pairs = self.heads[head * len(self.heads) // heads]
            q, k, v = split[:, :, head].unbind(1)
            scores = (q[pairs.rows] * k[pairs.columns]).sum(-1, dtype=torch.float32) * q.shape[-1] ** -0.5
            weights = pairs.below_largest(scores).exp()
            total = torch.zeros(len(q), device=q.device).index_add_(0, pairs.rows, weights)
            weights = drop(weights / total[pairs.rows], dropout, dropout > 0).to(v.dtype)
            outputs.append(torch.zeros_like(v).index_add_(0, pairs.rows, v[pairs.columns] * weights[:, None]))
        return torch.cat(outputs, -1)[None]

    def sums(self, x: Tensor) -> tuple[Tensor, ...]:
        """``(1, T, C)`` -> one such sum over relatives per split."""
        return tuple(pairs.sum(x[0])[None] for pairs in self.splits)


@dataclass(frozen=True)
class PackedBatch:
    """B graphs whose T nodes stand in one row; fields as in
    :class:`nas_core.predictor.nn_former.batch.Batch` with 1 for B."""

    ops: Tensor
    """``(1, T)``"""
    edges: NDArray[np.int64]
    """``(E, 2)`` numbered over all nodes"""
    sizes: Tensor
    """``(B,)``"""
    attributes: Tensor | None
    shapes: Tensor | None
    costs: Tensor | None
    static: Tensor | None
    """``(B, F)``"""

    @classmethod
    def of(cls, graphs: Graphs, device: torch.device | str = "cpu") -> PackedBatch:
        """All those graphs."""
        first = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
        edges = graphs.edges + np.repeat(first, graphs.edge_counts)[:, None]

        def rows(values: NDArray[np.float32] | None) -> Tensor | None:
            return None if values is None else torch.from_numpy(values.copy()).to(device)

        attributes, shapes, costs = rows(graphs.attributes), rows(graphs.shapes), rows(graphs.costs)
        return cls(
            torch.from_numpy(graphs.ops.astype(np.int64)).to(device)[None],
            edges,
            torch.from_numpy(graphs.sizes.copy()).to(device),
            None if attributes is None else attributes[None],
            None if shapes is None else shapes[None],
            None if costs is None else costs[None],
            rows(graphs.static),
        )

    def total(self, nodes: Tensor) -> Tensor:
        """Sum over the nodes of each graph: ``(1, T, C)`` -> ``(B, C)``."""
        return torch.stack([part.sum(0) for part in torch.split(nodes[0], self.sizes.tolist())])
