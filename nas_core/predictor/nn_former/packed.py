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
from nas_core.predictor.nn_former.attend import plain_attention
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.place import on_host, uploaded
from nas_core.predictor.nn_former.segments import Pairs, segment_sums

__all__ = ["Matrices", "PackedBatch", "PackedTopology", "matrices_of", "numbered", "packable"]

PACKED_FROM = 64
"""Mean number of nodes from which graphs are packed, where their model can."""
_ATTENTION = ("siblings", "global", "forward", "backward", "both", "two_hop")
_FEED_FORWARD = ("bidirectional", "vanilla", "forward", "backward")


def packable(config: NNFormerConfig) -> bool:
    """Whether such a model reads packed graphs."""
    summed = config.readout != "class_token" and config.position == "none"
    return summed and config.attention in _ATTENTION and config.feed_forward in _FEED_FORWARD


@dataclass(frozen=True)
class Matrices:
    """Relatives of the T nodes of packed graphs, as sparse matrices; one may stand several times."""

    heads: tuple[csr_array, ...]
    """Seen by each quarter of the heads, the node itself included; none: all nodes of the graph"""
    splits: tuple[csr_array, ...]
    """Summed by each split of the feed-forward"""


def matrices_of(edges: NDArray[np.integer], nodes: int, config: NNFormerConfig) -> Matrices:
    """From the edges ``(E, 2)`` of the union of all graphs.

    Raises:
        ConfigError: the model does not read packed graphs.
    """
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
    made: dict[int, csr_array] = {}
    kinds = choices[config.attention]()
    heads = tuple(made.setdefault(id(kind), csr_array(kind + itself)) for kind in kinds)
    splits = {"bidirectional": (forward, backward), "forward": (forward,), "backward": (backward,), "vanilla": ()}
    return Matrices(heads, splits[config.feed_forward])


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
        trained: bool = True,
    ) -> PackedTopology:
        """From the edges ``(E, 2)`` of the union of all graphs, and how many nodes each has.

        Args:
            trained: False: no gradients will be asked for.
        """
        matrices = matrices_of(edges, sum(sizes), config)
        made: dict[int, Pairs] = {}

        def pairs(matrix: csr_array) -> Pairs:
            if id(matrix) not in made:
                made[id(matrix)] = Pairs.of(matrix, device, trained)
            return made[id(matrix)]

        return cls(tuple(map(pairs, matrices.heads)), tuple(map(pairs, matrices.splits)), tuple(sizes))

    def attend(self, projected: Tensor, heads: int, dropout: float) -> Tensor:
        """``(1, T, 3 C)`` -> ``(1, T, C)``."""
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
        """``(1, T, C)`` -> one such sum over relatives per split."""
        return tuple(pairs.sum(x[0])[None] for pairs in self.splits)


@dataclass(frozen=True)
class PackedBatch:
    """B graphs whose T nodes stand in one row; fields as in
    :class:`nas_core.predictor.nn_former.batch.Batch` with 1 for B."""

    ops: Tensor
    """``(1, T)``"""
    edges: NDArray[np.int64] | None
    """``(E, 2)`` numbered over all nodes; None where a topology stands beside the batch"""
    sizes: Tensor
    """``(B,)``"""
    attributes: Tensor | None
    shapes: Tensor | None
    costs: Tensor | None
    static: Tensor | None
    """``(B, F)``"""
    lengths: tuple[int, ...] = ()
    """The sizes as the host knows them"""
    largest: int = 0
    """Largest operation index of the set of graphs, as the host knows it"""

    @classmethod
    def of(cls, graphs: Graphs, device: torch.device | str = "cpu") -> PackedBatch:
        """All those graphs."""

        def rows(values: NDArray[np.float32] | None) -> Tensor | None:
            return None if values is None else uploaded(values, device)[None]

        return cls(
            uploaded(graphs.ops.astype(np.int64), device)[None],
            numbered(graphs),
            uploaded(graphs.sizes, device),
            rows(graphs.attributes),
            rows(graphs.shapes),
            rows(graphs.costs),
            None if graphs.static is None else uploaded(graphs.static, device),
            tuple(graphs.sizes.tolist()),
            int(graphs.ops.max(initial=0)),
        )

    @property
    def most_nodes(self) -> int:
        """Nodes of the largest graph, as the host knows them."""
        return max(self.lengths, default=0)

    def total(self, nodes: Tensor) -> Tensor:
        """Sum over the nodes of each graph: ``(1, T, C)`` -> ``(B, C)``."""
        if on_host(nodes.device):
            return torch.stack([part.sum(0) for part in torch.split(nodes[0], list(self.lengths))])
        starts = self.sizes.cumsum(0) - self.sizes
        owners = torch.repeat_interleave(self.sizes, output_size=nodes.shape[1])
        return segment_sums(nodes[0], starts, owners)


def numbered(graphs: Graphs) -> NDArray[np.int64]:
    """Edges ``(E, 2)`` with the nodes of all graphs in one row."""
    first = np.concatenate([[0], np.cumsum(graphs.sizes)[:-1]])
    edges: NDArray[np.int64] = graphs.edges + np.repeat(first, graphs.edge_counts)[:, None]
    return edges
