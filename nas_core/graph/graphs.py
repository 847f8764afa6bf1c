"""Collections of graphs in joined arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.graph.graph import (
    FEATURES,
    Graph,
    GraphError,
    check_structure,
    checked_feature,
    edge_array,
    whole_numbers,
)
from nas_core.graph.operation import Operation, operation_named


@dataclass(frozen=True)
class Dense:
    """Graphs padded to N nodes each."""

    ops: NDArray[np.int16]
    """``(B, N)``, 0 for padding."""
    adjacency: NDArray[np.bool_]
    """``(B, N, N)``, True at ``[i, j]`` for an edge i -> j."""
    sizes: NDArray[np.int64]
    """``(B,)`` numbers of nodes before padding."""


@dataclass(frozen=True, eq=False)
class Graphs(Sequence[Graph]):
    """Sequence of G graphs in joined arrays. Indexing returns single graphs.

    Each feature (``attributes``, ``shapes``, ``costs``, ``static``) is present in all graphs with equal width, or in
    none.
    """

    ops: NDArray[np.int16]
    """``(nodes of all graphs,)``"""
    edges: NDArray[np.int32]
    """``(edges of all graphs, 2)``. Node indices start at 0 in each graph."""
    sizes: NDArray[np.int64]
    """``(G,)`` numbers of nodes."""
    edge_counts: NDArray[np.int64]
    """``(G,)`` numbers of edges."""
    attributes: NDArray[np.float32] | None = None
    """``(nodes of all graphs, K)``"""
    shapes: NDArray[np.float32] | None = None
    """``(nodes of all graphs, 4)``"""
    costs: NDArray[np.float32] | None = None
    """``(nodes of all graphs, 3)``"""
    static: NDArray[np.float32] | None = None
    """``(G, F)``"""
    operations: tuple[Operation, ...] | None = None
    """Description of each operation index, if equal for all graphs, or None."""
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
        """Join graphs. A :class:`Graphs` is returned unchanged.

        Raises:
            GraphError: an item is not a graph, or the graphs have different features.
        """
        if isinstance(graphs, Graphs):
            return graphs
        if isinstance(graphs, Graph):
            raise GraphError("got one Graph; expected a list of graphs, such as [graph]")
        graphs = list(graphs)
        if not graphs:
            return cls(np.zeros(0, np.int16), np.zeros((0, 2), np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
        features: dict[str, Any] = {}
        for name in FEATURES:
            arrays = [getattr(graph, name) for graph in graphs]
            widths = {None if array is None else array.shape[-1] for array in arrays}
            if len(widths) > 1:
                raise GraphError(
                    f"graphs have {name} of widths {sorted(widths, key=str)} (None: missing); expected equal widths"
                )
            join = np.stack if name == "static" else np.concatenate
            features[name] = None if None in widths else join(arrays)
        return cls(
            np.concatenate([graph.ops for graph in graphs]),
            np.concatenate([graph.edges for graph in graphs]),
            np.array([len(graph) for graph in graphs], np.int64),
            np.array([len(graph.edges) for graph in graphs], np.int64),
            **features,
            operations=shared_operations(graph.operations for graph in graphs),
        )

    @classmethod
    def from_dense(cls, ops: ArrayLike, adjacency: ArrayLike, sizes: ArrayLike | None = None) -> Graphs:
        """Create graphs from padded arrays.

        Args:
            ops: ``(G, N)`` operation indices.
            adjacency: ``(G, N, N)``, non-zero at ``[g, i, j]`` for an edge i -> j.
            sizes: ``(G,)`` numbers of nodes before padding. Default: N.
        """
        nodes, matrix = whole_numbers(ops, "operation indices"), np.asarray(adjacency)
        if nodes.ndim != 2 or matrix.shape != (*nodes.shape, nodes.shape[1]):
            raise GraphError(
                f"got operations {nodes.shape} and adjacency {matrix.shape}; expected (G, N) and (G, N, N)"
            )
        count, width = nodes.shape
        sizes = np.full(count, width) if sizes is None else np.asarray(sizes)
        edges = np.argwhere(matrix)
        edge_counts = np.bincount(edges[:, 0], minlength=count)
        node_ops = nodes[np.arange(width) < sizes[:, None]]
        return cls.from_arrays({"ops": node_ops, "edges": edges[:, 1:], "sizes": sizes, "edge_counts": edge_counts})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Graphs:
        """Create graphs from arrays with the names and shapes of the attributes of this class."""
        ops, sizes, counts = (whole_numbers(arrays[name], name) for name in ("ops", "sizes", "edge_counts"))
        edges = edge_array(arrays["edges"])
        if sizes.shape != counts.shape or counts.min(initial=0) < 0:
            raise GraphError(f"got sizes {sizes.shape} and edge_counts {counts.shape}; expected (G,), with values >= 0")
        check_structure(ops, edges, sizes, counts)
        rows = {name: len(sizes) if name == "static" else len(ops) for name in FEATURES if name in arrays}
        features: dict[str, Any] = {name: checked_feature(name, arrays[name], count) for name, count in rows.items()}
        return cls(ops.astype(np.int16), edges.astype(np.int32), sizes, counts, **features)

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
        features = self._features(nodes, position)
        return Graph(self.ops[nodes], self._edges(position), **features, operations=self.operations)

    def __iter__(self) -> Iterator[Graph]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"Graphs({len(self)} graphs, {len(self.ops)} nodes, {len(self.edges)} edges)"

    def take(self, indices: ArrayLike) -> Graphs:
        """Select graphs by indices or by a boolean mask ``(G,)``."""
        positions = np.asarray(indices)
        selected = np.arange(len(self))[positions if positions.size else positions.astype(np.int64)]
        nodes, edges = spans(self._first_node, selected), spans(self._first_edge, selected)
        return Graphs(
            self.ops[nodes],
            self.edges[edges],
            self.sizes[selected],
            self.edge_counts[selected],
            **self._features(nodes, selected),
            operations=self.operations,
        )

    def dense(self, width: int = 0) -> Dense:
        """Return padded arrays with at least ``width`` nodes per graph."""
        size = max(width, int(self.sizes.max(initial=1)))
        node = np.arange(len(self.ops)) - np.repeat(self._first_node[:-1], self.sizes)
        ops = np.zeros((len(self), size), np.int16)
        ops[np.repeat(np.arange(len(self)), self.sizes), node] = self.ops
        adjacency = np.zeros((len(self), size, size), np.bool_)
        adjacency[np.repeat(np.arange(len(self)), self.edge_counts), self.edges[:, 0], self.edges[:, 1]] = True
        return Dense(ops, adjacency, self.sizes)

    def distinct(self) -> tuple[Graphs, NDArray[np.int64]]:
        """Return the distinct graphs, and for each graph its index among them, ``(G,)``.

        Isomorphic graphs with another order of nodes differ.
        """
        first: dict[tuple[bytes, ...], int] = {}
        inverse = np.empty(len(self), np.int64)
        for index in range(len(self)):
            nodes = slice(self._first_node[index], self._first_node[index + 1])
            arrays = (self.ops[nodes], self._edges(index), *self._features(nodes, index).values())
            key = tuple(array.tobytes() for array in arrays if array is not None)
            inverse[index] = first.setdefault(key, len(first))
        order = np.full(len(first), -1)
        order[inverse[::-1]] = np.arange(len(self))[::-1]
        return self.take(order), inverse

    def _features(self, nodes: Any, graphs: Any) -> dict[str, Any]:
        features = {name: getattr(self, name) for name in FEATURES}
        return {
            name: None if values is None else values[graphs if name == "static" else nodes]
            for name, values in features.items()
        }

    def _edges(self, index: int) -> NDArray[np.int32]:
        return self.edges[self._first_edge[index] : self._first_edge[index + 1]]


def shared_operations(tables: Iterable[tuple[Operation, ...] | None]) -> tuple[Operation, ...] | None:
    """Return the longest of several descriptions of operation indices, which must agree."""
    by_length = sorted({table for table in tables if table is not None}, key=len)
    for table in by_length[:-1]:
        for index, (operation, other) in enumerate(zip(table, by_length[-1], strict=False)):
            if operation != other:
                raise GraphError(
                    f"operation {index} is {operation} in some graphs and {other} in others; expected one description"
                )
    return by_length[-1] if by_length else None


@overload
def with_operations(graphs: Graph, operations: Sequence[Operation | str]) -> Graph: ...
@overload
def with_operations(graphs: Graphs | Iterable[Graph], operations: Sequence[Operation | str]) -> Graphs: ...
def with_operations(graphs: Graph | Graphs | Iterable[Graph], operations: Sequence[Operation | str]) -> Graph | Graphs:
    """Return graphs with a description of their operations.

    Args:
        operations: an :class:`Operation`, or a name for :func:`operation_named`, for each operation index.

    Raises:
        GraphError: a name is unknown, or an operation index has no description.
    """
    if isinstance(graphs, Graph):
        return with_operations([graphs], operations)[0]
    table: list[Operation] = []
    for item in operations:
        operation = operation_named(item) if isinstance(item, str) else item
        if operation is None:
            raise GraphError(f"operation {item!r} is unknown; describe it, such as Operation('convolution', kernel=3)")
        table.append(operation)
    joined = Graphs.of(graphs)
    if joined.ops.max(initial=-1) >= len(table):
        raise GraphError(
            f"a graph has operation index {joined.ops.max()}, but only {len(table)} operations are described"
        )
    return replace(joined, operations=tuple(table))


def spans(first: NDArray[np.int64], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the joined ranges from ``first[i]`` to ``first[i + 1]`` for each i in ``indices``."""
    counts = first[indices + 1] - first[indices]
    starts = np.repeat(first[indices] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    positions: NDArray[np.int64] = starts + np.arange(int(counts.sum()))
    return positions
