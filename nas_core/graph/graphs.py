"""Many graphs in few arrays: what predictors read and what readers of whole benchmarks return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.graph.graph import FEATURES, Graph, GraphError, check_acyclic, edge_matrix, whole_numbers
from nas_core.graph.operation import Operation


@dataclass(frozen=True)
class Dense:
    """Graphs padded to equal size, N nodes each."""

    ops: NDArray[np.int16]
    """``(B, N)``; 0 where there is no node."""
    adjacency: NDArray[np.bool_]
    """``(B, N, N)``; True at ``[i, j]`` for an edge i -> j."""
    sizes: NDArray[np.int64]
    """``(B,)`` number of nodes; they stand in front."""


@dataclass(frozen=True, eq=False)
class Graphs(Sequence[Graph]):
    """A sequence of graphs. Nodes and edges of all of them stand one after another; indexing gives single values.

    423,624 graphs of NAS-Bench-101 take 60 MB this way. Either all graphs have ``attributes`` (``shapes``,
    ``costs``, ``static``) of equal width, or none.
    """

    ops: NDArray[np.int16]
    """``(nodes of all graphs,)``"""
    edges: NDArray[np.int32]
    """``(edges of all graphs, 2)``, numbered from 0 in each graph."""
    sizes: NDArray[np.int64]
    """``(G,)`` nodes of each graph."""
    edge_counts: NDArray[np.int64]
    """``(G,)`` edges of each graph."""
    attributes: NDArray[np.float32] | None = None
    """``(nodes of all graphs, K)``"""
    shapes: NDArray[np.float32] | None = None
    """``(nodes of all graphs, 4)``"""
    costs: NDArray[np.float32] | None = None
    """``(nodes of all graphs, 3)``"""
    static: NDArray[np.float32] | None = None
    """``(G, F)``"""
    operations: tuple[Operation, ...] | None = None
    """What each operation index stands for, where that is known of all of them alike"""
    _first_node: NDArray[np.int64] = field(init=False, repr=False)
    _first_edge: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("ops", "edges", "sizes", "edge_counts", *FEATURES):
            if getattr(self, name) is not None:
                getattr(self, name).flags.writeable = False
        object.__setattr__(self, "_first_node", np.concatenate([[0], np.cumsum(self.sizes)]))
        object.__setattr__(self, "_first_edge", np.concatenate([[0], np.cumsum(self.edge_counts)]))

    @classmethod
    def of(cls, graphs: Iterable[Graph] | Graphs) -> Graphs:
        """From single graphs; a :class:`Graphs` is returned as it is.

        Raises:
            GraphError: something else than graphs, or one alone and not in a list.
            GraphError: some graphs have attributes, shapes, costs or static features and others none, or other numbers.
        """
        if isinstance(graphs, Graphs):
            return graphs
        if isinstance(graphs, Graph) or not isinstance(graphs, Iterable):
            raise GraphError(f"got a {type(graphs).__name__}; expected a list of graphs, such as [graph]")
        graphs = list(graphs)
        if wrong := {type(graph).__name__ for graph in graphs if not isinstance(graph, Graph)}:
            raise GraphError(f"got {min(wrong)} where a Graph was expected; a reader of nas_core.graph makes one")
        if not len(graphs):
            return cls(np.zeros(0, np.int16), np.zeros((0, 2), np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
        more: dict[str, NDArray[np.float32] | None] = {}
        for name in FEATURES:
            parts = [getattr(graph, name) for graph in graphs]
            widths = {None if part is None else part.shape[-1] for part in parts}
            if len(widths) > 1:
                raise GraphError(
                    f"graphs with {name} of widths {sorted(widths, key=str)} in one set (None: without); expected equal"
                )
            join = np.stack if name == "static" else np.concatenate
            more[name] = None if None in widths else join(parts)
        return cls(
            np.concatenate([graph.ops for graph in graphs]),
            np.concatenate([graph.edges for graph in graphs]),
            np.array([len(graph) for graph in graphs], np.int64),
            np.array([len(graph.edges) for graph in graphs], np.int64),
            **more,
            operations=shared_operations(graph.operations for graph in graphs),
        )

    @classmethod
    def from_dense(cls, ops: ArrayLike, adjacency: ArrayLike, sizes: ArrayLike | None = None) -> Graphs:
        """From padded arrays, without a loop over graphs.

        Args:
            ops: ``(G, N)`` operation indices.
            adjacency: ``(G, N, N)``, non-zero at ``[g, i, j]`` for an edge i -> j.
            sizes: ``(G,)`` nodes of each graph, which stand in front; default: N.

        Raises:
            GraphError: wrong shapes, edges beyond a graph's nodes, a cycle.
        """
        kinds = whole_numbers(ops, "operation indices")
        matrix = edge_matrix(adjacency)
        if kinds.ndim != 2 or matrix.shape != (*kinds.shape, kinds.shape[1]):
            raise GraphError(f"operations {kinds.shape} and adjacency {matrix.shape}; expected (G, N) and (G, N, N)")
        count, width = kinds.shape
        nodes = np.full(count, width) if sizes is None else whole_numbers(sizes, "sizes")
        if nodes.shape != (count,) or (count and (nodes.min() < 1 or nodes.max() > width)):
            raise GraphError(f"sizes have shape {nodes.shape} for {count} graphs; expected one from 1 to {width} each")
        present = np.arange(width) < nodes[:, None]
        if ((kinds < 0) | (kinds > np.iinfo(np.int16).max))[present].any():
            raise GraphError(f"operation indices reach from {kinds.min()} to {kinds.max()}; expected 0 to 32767")
        if (matrix & ~(present[:, :, None] & present[:, None, :])).any():
            raise GraphError("an edge leads to a node beyond the size of its graph")
        where = np.argwhere(matrix)
        edge_counts = np.bincount(where[:, 0], minlength=count)
        made = cls(
            kinds[present].astype(np.int16),
            where[:, 1:].astype(np.int32),
            nodes.astype(np.int64),
            edge_counts.astype(np.int64),
        )
        for index in np.unique(where[where[:, 1] >= where[:, 2], 0]):
            check_acyclic(made._edges(int(index)), int(nodes[index]))
        return made

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Graph: ...
    @overload
    def __getitem__(self, index: slice) -> Graphs: ...
    def __getitem__(self, index: int | slice) -> Graph | Graphs:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        position = range(len(self))[index]
        nodes = slice(self._first_node[position], self._first_node[position + 1])
        return Graph(
            self.ops[nodes],
            self._edges(position),
            attributes=None if self.attributes is None else self.attributes[nodes],
            shapes=None if self.shapes is None else self.shapes[nodes],
            costs=None if self.costs is None else self.costs[nodes],
            static=None if self.static is None else self.static[position],
            operations=self.operations,
        )

    def __iter__(self) -> Iterator[Graph]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"Graphs({len(self)} graphs, {len(self.ops)} nodes, {len(self.edges)} edges)"

    def take(self, indices: ArrayLike) -> Graphs:
        """Those graphs, in that order; negative indices count from the end, a mask ``(G,)`` takes those that are True.

        Raises:
            GraphError: an index beyond the graphs, or a mask of another length.
        """
        given = np.asarray(indices)
        if given.dtype == np.bool_ and given.shape == (len(self),):
            given = np.flatnonzero(given)
        chosen = whole_numbers(given, "indices of graphs")
        if given.dtype == np.bool_ or chosen.ndim != 1 or ((chosen < -len(self)) | (chosen >= len(self))).any():
            raise GraphError(f"there are {len(self)} graphs; expected indices from {-len(self)} to {len(self) - 1}")
        chosen = chosen % max(len(self), 1)
        nodes, edges = _spans(self._first_node, chosen), _spans(self._first_edge, chosen)
        return Graphs(
            self.ops[nodes],
            self.edges[edges],
            self.sizes[chosen],
            self.edge_counts[chosen],
            None if self.attributes is None else self.attributes[nodes],
            None if self.shapes is None else self.shapes[nodes],
            None if self.costs is None else self.costs[nodes],
            None if self.static is None else self.static[chosen],
            self.operations,
        )

    def dense(self, indices: ArrayLike | None = None, width: int = 0) -> Dense:
        """Padded arrays of those graphs (default: all), ``width`` nodes wide (default: the largest)."""
        part = self if indices is None else self.take(indices)
        size = max(width, int(part.sizes.max(initial=1)))
        graph_of_node = np.repeat(np.arange(len(part)), part.sizes)
        node = np.arange(len(part.ops)) - np.repeat(part._first_node[:-1], part.sizes)
        ops = np.zeros((len(part), size), np.int16)
        ops[graph_of_node, node] = part.ops
        adjacency = np.zeros((len(part), size, size), np.bool_)
        adjacency[np.repeat(np.arange(len(part)), part.edge_counts), part.edges[:, 0], part.edges[:, 1]] = True
        return Dense(ops, adjacency, part.sizes)

    def distinct(self) -> tuple[Graphs, NDArray[np.int64]]:
        """Each different graph once, and for every graph the index of its equal: ``(G,)``.

        Equal means equal arrays; isomorphic graphs with nodes in another order stay apart.
        """
        first: dict[bytes, int] = {}
        inverse = np.empty(len(self), np.int64)
        columns = [x for x in (self.attributes, self.shapes, self.costs) if x is not None]
        for index in range(len(self)):
            nodes = slice(self._first_node[index], self._first_node[index + 1])
            key = b"|".join(
                [
                    self.sizes[index].tobytes(),
                    self.ops[nodes].tobytes(),
                    self._edges(index).tobytes(),
                    *(x[nodes].tobytes() for x in columns),
                ]
                + ([] if self.static is None else [self.static[index].tobytes()])
            )
            inverse[index] = first.setdefault(key, len(first))
        order = np.full(len(first), -1)
        order[inverse[::-1]] = np.arange(len(self))[::-1]
        return self.take(order), inverse

    def _edges(self, index: int) -> NDArray[np.int32]:
        return self.edges[self._first_edge[index] : self._first_edge[index + 1]]


def shared_operations(tables: Iterable[tuple[Operation, ...] | None]) -> tuple[Operation, ...] | None:
    """What operation indices stand for in all of some graphs: the longest table that any of them gives.

    Raises:
        GraphError: two say different things of an index.
    """
    given = sorted({table for table in tables if table is not None}, key=len)
    for table in given[:-1]:
        for index, (one, other) in enumerate(zip(table, given[-1], strict=False)):
            if one != other:
                raise GraphError(f"operation {index} is {one} in some graphs of one set, in others {other}")
    return given[-1] if given else None


def _spans(first: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of the items of the chosen graphs, one graph after another."""
    counts = first[chosen + 1] - first[chosen]
    starts = np.repeat(first[chosen] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    positions: NDArray[np.int64] = starts + np.arange(int(counts.sum()))
    return positions
