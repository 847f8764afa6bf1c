"""A network as a directed acyclic graph."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError, unknown_choice
from nas_core.graph.operation import Operation

FEATURES = ("attributes", "shapes", "costs", "static")


class GraphError(DataError):
    """A graph that is cyclic, malformed or of another benchmark."""


class Graph:
    """Directed acyclic graph of N operations. Immutable and hashable; graphs with equal arrays are equal.

    Attributes:
        ops: ``(N,)`` operation indices, from 0.
        edges: ``(E, 2)`` pairs (source, target), sorted and distinct.
        attributes: ``(N, K)`` numbers of each operation, such as kernel size, heads or width, or None.
        shapes: ``(N, 4)`` output shapes, padded with zeros, or None.
        costs: ``(N, 3)`` FLOPs, parameters and memory access of each operation, or None.
        static: ``(F,)`` numbers of the whole network, such as batch size, FLOPs or parameters, or None.
        operations: description of each operation index, or None. Comparisons ignore it.

    Raises:
        GraphError: shapes are wrong, indices are negative, an edge leads to a missing node, or there is a cycle.
    """

    __slots__ = ("_key", "attributes", "costs", "edges", "operations", "ops", "shapes", "static")

    ops: NDArray[np.int16]
    edges: NDArray[np.int32]
    attributes: NDArray[np.float32] | None
    shapes: NDArray[np.float32] | None
    costs: NDArray[np.float32] | None
    static: NDArray[np.float32] | None
    operations: tuple[Operation, ...] | None
    _key: bytes

    def __init__(
        self,
        ops: ArrayLike,
        edges: ArrayLike | Iterable[tuple[int, int]],
        *,
        attributes: ArrayLike | None = None,
        shapes: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        static: ArrayLike | None = None,
        operations: tuple[Operation, ...] | None = None,
    ) -> None:
        pairs = edge_array(edges if isinstance(edges, np.ndarray) else list(edges))  # type: ignore[arg-type]
        pairs = np.unique(pairs, axis=0) if len(pairs) else pairs
        nodes = whole_numbers(ops, "operation indices")
        check_structure(nodes, pairs, np.array([nodes.size]), np.array([len(pairs)]))
        tables = {"attributes": attributes, "shapes": shapes, "costs": costs}
        values: dict[str, Any] = {
            "ops": nodes.astype(np.int16),
            "edges": pairs.astype(np.int32),
            **{n: None if x is None else checked_feature(n, x, len(nodes)) for n, x in tables.items()},
            "static": None if static is None else checked_feature("static", [static], 1)[0],
            "operations": operations,
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_key", self._bytes())

    @classmethod
    def from_adjacency(cls, adjacency: ArrayLike, ops: ArrayLike, **more: Any) -> Graph:
        """Create a graph from a matrix ``(N, N)`` that is non-zero at ``[i, j]`` for an edge i -> j.

        For ``more``, see :class:`Graph`.
        """
        matrix, nodes = np.asarray(adjacency), whole_numbers(ops, "operation indices")
        if matrix.shape != nodes.shape * 2:
            raise GraphError(
                f"adjacency has shape {matrix.shape} for operations {nodes.shape}; expected (N, N) and (N,)"
            )
        return cls(nodes, np.argwhere(matrix), **more)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: a graph is immutable; create another with Graph(...)")

    def __len__(self) -> int:
        return len(self.ops)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Graph({len(self)} nodes, {len(self.edges)} edges, {hashlib.sha256(self._key).hexdigest()[:10]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.to_dict(), self.operations)

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        """``(N, N)``, True at ``[i, j]`` for an edge i -> j."""
        matrix = np.zeros((len(self), len(self)), np.bool_)
        matrix[self.edges[:, 0], self.edges[:, 1]] = True
        return matrix

    def permuted(self, order: Sequence[int] | NDArray[np.integer[Any]]) -> Graph:
        """Return the same network with reordered nodes. Node ``i`` of the result is node ``order[i]`` of this graph."""
        indices = np.asarray(order)
        features = {name: getattr(self, name) for name in ("attributes", "shapes", "costs")}
        return Graph(
            self.ops[indices],
            np.argsort(indices)[self.edges],
            **{name: None if values is None else values[indices] for name, values in features.items()},
            static=self.static,
            operations=self.operations,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays as lists for JSON, without those that are None."""
        return {n: getattr(self, n).tolist() for n in ("ops", "edges", *FEATURES) if getattr(self, n) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Graph:
        if not isinstance(data, Mapping) or not {"ops", "edges"} <= set(data) <= {"ops", "edges", *FEATURES}:
            raise GraphError(
                f"got graph {str(data)[:80]}; expected keys ops and edges, and optionally {', '.join(FEATURES)}"
            )
        return cls(**data)

    def _bytes(self) -> bytes:
        features = [getattr(self, name) for name in FEATURES]
        widths = [-1 if x is None else x.shape[-1] for x in features]
        head = np.array([len(self.ops), len(self.edges), *widths], np.int32)
        return b"".join(array.tobytes() for array in (head, self.ops, self.edges, *features) if array is not None)


def check_structure(
    ops: NDArray[np.int64], edges: NDArray[np.int64], sizes: NDArray[np.int64], edge_counts: NDArray[np.int64]
) -> None:
    """Raise ``GraphError`` unless the joined arrays of :class:`~nas_core.graph.graphs.Graphs` are acyclic graphs."""
    if ops.ndim != 1 or sizes.min(initial=1) < 1 or (sizes.sum(), edge_counts.sum()) != (len(ops), len(edges)):
        raise GraphError(
            f"graphs of {sizes.sum()} nodes and {edge_counts.sum()} edges have operation indices {ops.shape} and edges"
            f" {edges.shape}; expected one index per node, and at least one node per graph"
        )
    if ops.min(initial=0) < 0 or ops.max(initial=0) > np.iinfo(np.int16).max:
        raise GraphError(f"operation indices are from {ops.min()} to {ops.max()}; expected 0 to 32767")
    invalid = (edges < 0) | (edges >= np.repeat(sizes, edge_counts)[:, None])
    if invalid.any():
        raise GraphError(f"an edge refers to node {edges[invalid][0]}, which is not in its graph")
    _check_acyclic(edges + np.repeat(np.cumsum(sizes) - sizes, edge_counts)[:, None], len(ops))


def _check_acyclic(edges: NDArray[np.int64], nodes: int) -> None:
    source, target = edges[:, 0], edges[:, 1]
    if (source < target).all():
        return
    from scipy.sparse import coo_array  # takes long to import
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(edges), np.int8), (source, target)), shape=(nodes, nodes))
    _, component = connected_components(matrix, connection="strong")
    cyclic = np.bincount(component)[component] > 1
    cyclic[source[source == target]] = True
    if cyclic.any():
        raise GraphError(
            f"the graph has a cycle through {cyclic.sum()} of its {nodes} nodes; expected a directed acyclic graph"
        )


def whole_numbers(values: Any, name: str) -> NDArray[np.int64]:
    """Convert to an array of integers. Error messages contain ``name``."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise GraphError(f"{name} have rows of unequal length; expected equal lengths") from None
    if array.size and array.dtype.kind not in "iub":
        raise GraphError(f"{name} have type {array.dtype}; expected integers")
    return array.astype(np.int64)


def operation_indices(values: Any, count: int, benchmark: str) -> NDArray[np.int64]:
    """Validate operation indices below ``count``. Error messages contain ``benchmark``."""
    indices = whole_numbers(values, "operations")
    if len(invalid := indices[(indices < 0) | (indices >= count)]):
        raise unknown_choice(f"operation index of {benchmark}", int(invalid[0]), range(count))
    return indices


def edge_array(edges: Any) -> NDArray[np.int64]:
    """Validate edges, and return them as array ``(E, 2)``."""
    pairs = whole_numbers(edges, "edges")
    pairs = pairs if pairs.size else pairs.reshape(0, 2)
    if pairs.shape[1:] != (2,):
        raise GraphError(f"edges have shape {pairs.shape}; expected pairs (E, 2) of source and target")
    return pairs


def checked_feature(name: str, values: Any, rows: int) -> NDArray[np.float32]:
    """Validate a feature table of a graph, and return it as array ``(rows, K)``."""
    try:
        array = np.asarray(values, np.float32) + np.float32(0)  # -0 becomes 0: equal numbers, equal bytes
    except (TypeError, ValueError):
        raise GraphError(f"{name} of a graph are not a table of numbers; expected ({rows}, K)") from None
    width = {"shapes": 4, "costs": 3}.get(name)
    if array.ndim != 2 or len(array) != rows or width not in (None, array.shape[1]):
        raise GraphError(f"{name} of a graph have shape {array.shape}; expected ({rows}, {width or 'K'})")
    if not np.isfinite(array).all():
        raise GraphError(f"{name} of a graph have NaN or infinite values; expected finite numbers")
    if name == "costs" and array.min(initial=0) < 0:
        raise GraphError(f"costs of a graph contain {array.min():g}, which is below 0; expected non-negative numbers")
    return array


def _unpickle(data: Mapping[str, Any], operations: tuple[Operation, ...] | None) -> Graph:
    return Graph(**data, operations=operations)
