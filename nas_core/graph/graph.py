"""A network as a directed acyclic graph, an immutable value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError
from nas_core.graph.operation import Operation

FEATURES = ("attributes", "shapes", "costs", "static")


class GraphError(DataError):
    """A graph that is cyclic, malformed or not of the expected kind."""


class Graph:
    """N operations and the edges between them. Frozen and hashable; graphs with equal arrays are equal.

    Attributes:
        ops: ``(N,)`` operation indices, from 0; the reader of the graph names them.
        edges: ``(E, 2)`` pairs source, target; sorted, distinct, acyclic.
        attributes: ``(N, K)`` numbers of each operation (kernel size, heads, width), or None.
        shapes: ``(N, 4)`` output shape of each operation, zero-padded, or None.
        costs: ``(N, 3)`` FLOPs, parameters and memory access of each operation, or None.
        static: ``(F,)`` numbers of the whole network (batch, FLOPs, parameters), or None.
        operations: description of each operation index, or None; ignored by comparisons.

    Raises:
        GraphError: wrong shapes, negative indices, edges to absent nodes, a cycle.
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
        kinds = whole_numbers(ops, "operation indices")
        if kinds.ndim != 1 or not len(kinds) or kinds.min() < 0 or kinds.max() > np.iinfo(np.int16).max:
            raise GraphError(f"operation indices have shape {kinds.shape}; expected at least one, each from 0 to 32767")
        listed = isinstance(edges, Iterable) and not isinstance(edges, np.ndarray)
        pairs = whole_numbers(list(edges) if listed else edges, "edges")  # type: ignore[arg-type]
        pairs = pairs if pairs.size else pairs.reshape(0, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise GraphError(f"edges have shape {pairs.shape}; expected pairs (E, 2) of source and target")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(kinds)):
            raise GraphError(
                f"an edge leads to node {pairs.max()} or {pairs.min()}; the graph has nodes 0 to {len(kinds) - 1}"
            )
        pairs = np.unique(pairs, axis=0)
        check_acyclic(pairs, len(kinds))
        if operations is not None and len(operations) <= kinds.max():
            raise GraphError(
                f"{len(operations)} operations are described; expected one for each index up to {kinds.max()}"
            )
        row = None if static is None else checked_feature("static", [static], 1)[0]
        tables = {"attributes": attributes, "shapes": shapes, "costs": costs}
        parts: dict[str, Any] = {
            "ops": kinds.astype(np.int16),
            "edges": pairs.astype(np.int32),
            **{n: None if x is None else checked_feature(n, x, len(kinds)) for n, x in tables.items()},
            "static": row,
            "operations": operations,
        }
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_key", self._bytes())

    @classmethod
    def from_adjacency(cls, adjacency: ArrayLike, ops: ArrayLike, **more: Any) -> Graph:
        """Return a graph from a matrix ``(N, N)`` that is non-zero at ``[i, j]`` for an edge i -> j."""
        matrix, kinds = edge_matrix(adjacency), whole_numbers(ops, "operation indices")
        if kinds.ndim != 1 or matrix.shape != (len(kinds), len(kinds)):
            raise GraphError(
                f"adjacency has shape {matrix.shape} for operations {kinds.shape}; expected one row and column each"
            )
        return cls(kinds, np.argwhere(matrix), **more)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a graph is immutable; make another with Graph(...) instead of setting {name!r}")

    def __len__(self) -> int:
        return len(self.ops)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Graph({len(self)} nodes, {len(self.edges)} edges, {hashlib.sha256(self._key).hexdigest()[:10]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.to_dict(), self.operations)

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        """``(N, N)``, True at ``[i, j]`` for an edge i -> j."""
        matrix = np.zeros((len(self), len(self)), np.bool_)
        matrix[self.edges[:, 0], self.edges[:, 1]] = True
        return matrix

    def permuted(self, order: Sequence[int] | NDArray[np.integer[Any]]) -> Graph:
        """Return the same network with reordered nodes: node ``i`` is ``order[i]`` of this graph."""
        chosen = whole_numbers(order, "positions")
        if chosen.ndim != 1 or sorted(chosen.tolist()) != list(range(len(self))):
            raise GraphError(f"{chosen.tolist()} is no order of {len(self)} nodes")
        features = {name: getattr(self, name) for name in ("attributes", "shapes", "costs")}
        return Graph(
            self.ops[chosen],
            np.argsort(chosen)[self.edges],
            **{name: None if values is None else values[chosen] for name, values in features.items()},
            static=self.static,
            operations=self.operations,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists for JSON, without absent parts."""
        return {n: getattr(self, n).tolist() for n in ("ops", "edges", *FEATURES) if getattr(self, n) is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Graph:
        """Return the graph of a :meth:`to_dict`."""
        if not isinstance(data, Mapping) or not {"ops", "edges"} <= set(data) <= {"ops", "edges", *FEATURES}:
            got = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
            raise GraphError(f"a graph has parts ops and edges, and may have {', '.join(FEATURES)}; got {got}")
        return cls(**data)

    def _bytes(self) -> bytes:
        features = [getattr(self, name) for name in FEATURES]
        widths = [-1 if x is None else x.shape[-1] for x in features]
        head = np.array([len(self.ops), len(self.edges), *widths], np.int32)
        return b"".join(part.tobytes() for part in (head, self.ops, self.edges, *features) if part is not None)


def check_acyclic(edges: NDArray[np.integer[Any]], nodes: int) -> None:
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


def whole_numbers(values: Any, what: str) -> NDArray[np.int64]:
    """Return an array of integers; ``what`` names them in errors."""
    array = _array(values, what)
    if array.size and array.dtype.kind not in "iub":
        raise GraphError(f"{what} are of type {array.dtype}; expected whole numbers")
    return array.astype(np.int64)


def edge_matrix(values: Any) -> NDArray[np.bool_]:
    array = _array(values, "rows of an adjacency")
    if array.dtype.kind not in "iubf":
        raise GraphError(f"an adjacency is of type {array.dtype}; expected numbers, 0 where there is no edge")
    return np.asarray(array != 0, np.bool_)


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise GraphError(f"{what} are of unequal length; expected rows of one length") from None


def checked_feature(name: str, values: Any, rows: int) -> NDArray[np.float32]:
    """Return a feature table ``(rows, K)``."""
    try:
        array = np.asarray(values, np.float32) + np.float32(0)  # -0 becomes 0: equal numbers, equal bytes
    except (TypeError, ValueError):
        raise GraphError(f"{name} of a graph are no table of numbers") from None
    width = {"shapes": 4, "costs": 3}.get(name)
    if array.ndim != 2 or len(array) != rows or width not in (None, array.shape[1]):
        raise GraphError(f"{name} of a graph have shape {array.shape}; expected ({rows}, {width or 'K'})")
    if not np.isfinite(array).all():
        raise GraphError(f"{name} of a graph hold a value that is no number")
    if name == "costs" and array.min(initial=0) < 0:
        raise GraphError(f"costs of a graph hold {array.min():g}; expected none below 0")
    return array


def _rebuild(data: Mapping[str, Any], operations: tuple[Operation, ...] | None) -> Graph:
    return Graph(**data, operations=operations)
