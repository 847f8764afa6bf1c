"""A network as a directed acyclic graph, as an immutable value."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError
from nas_core.graph.operation import Operation

FEATURES = ("attributes", "shapes", "costs", "static")
"""What a graph may have beside its operations and edges."""


class GraphError(DataError):
    """A graph that is cyclic, malformed or outside what was asked of it."""


class Graph:
    """N operations and the edges between them. Frozen, hashable; two graphs with equal arrays are equal values.

    Attributes:
        ops: ``(N,)`` operation indices, from 0; their names belong to the reader that made the graph.
        edges: ``(E, 2)`` pairs source, target; sorted, each once, without cycles.
        attributes: ``(N, K)`` numbers of each operation (kernel size, heads, width), or None.
        shapes: ``(N, 4)`` output shape of each operation, zero-padded, or None.
        costs: ``(N, 3)`` FLOPs, parameters and memory access of each operation, in units, none below 0, or None.
        static: ``(F,)`` numbers of the whole network (batch, FLOPs, parameters), or None.
        operations: what each operation index stands for, or None. It is no part of the value: graphs that differ in it
            alone are equal.

    Raises:
        GraphError: wrong shapes, negative indices, edges that leave the graph, a cycle.
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
        pairs = whole_numbers(
            list(edges) if isinstance(edges, Iterable) and not hasattr(edges, "__array__") else edges, "edges"
        )
        if pairs.size == 0:
            pairs = pairs.reshape(0, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise GraphError(f"edges have shape {pairs.shape}; expected pairs (E, 2) of source and target")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(kinds)):
            raise GraphError(
                f"an edge leads to node {pairs.max()} or {pairs.min()}; the graph has nodes 0 to {len(kinds) - 1}"
            )
        pairs = np.unique(pairs, axis=0)
        check_acyclic(pairs, len(kinds))
        set_ = object.__setattr__
        set_(self, "ops", _frozen(kinds, np.int16))
        set_(self, "edges", _frozen(pairs, np.int32))
        given = (("attributes", attributes, 2), ("shapes", shapes, 2), ("costs", costs, 2), ("static", static, 1))
        for name, value, rows in given:
            set_(self, name, _numbers(name, value, rows, len(kinds)))
        set_(self, "operations", None if operations is None else _checked(operations, int(kinds.max())))
        set_(self, "_key", self._bytes())

    @classmethod
    def from_adjacency(cls, adjacency: ArrayLike, ops: ArrayLike, **more: Any) -> Graph:
        """From a matrix ``(N, N)``, non-zero at ``[i, j]`` for an edge i -> j.

        Raises:
            GraphError: not square, another size than ``ops``, or a cycle.
        """
        matrix, kinds = edge_matrix(adjacency), whole_numbers(ops, "operation indices")
        if kinds.ndim != 1 or matrix.shape != (len(kinds), len(kinds)):
            raise GraphError(
                f"adjacency has shape {matrix.shape} for operations {kinds.shape}; expected one row and column each"
            )
        return cls(kinds, np.argwhere(matrix), **more)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a graph is immutable; make another with Graph(...) instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a graph is immutable; {name!r} cannot be deleted")

    def __len__(self) -> int:
        """Number of nodes."""
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
        """The same network with its nodes in another order: node ``i`` of the result is node ``order[i]`` of this."""
        chosen = whole_numbers(order, "positions")
        if chosen.ndim != 1 or sorted(chosen.tolist()) != list(range(len(self))):
            raise GraphError(f"{chosen.tolist()} is no order of {len(self)} nodes")
        place = np.argsort(chosen)
        return Graph(
            self.ops[chosen],
            place[self.edges],
            attributes=None if self.attributes is None else self.attributes[chosen],
            shapes=None if self.shapes is None else self.shapes[chosen],
            costs=None if self.costs is None else self.costs[chosen],
            static=self.static,
            operations=self.operations,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON; parts that are absent are left out."""
        parts: dict[str, NDArray[Any]] = {"ops": self.ops, "edges": self.edges}
        parts |= {name: getattr(self, name) for name in FEATURES if getattr(self, name) is not None}
        return {name: value.tolist() for name, value in parts.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Graph:
        """Inverse of :meth:`to_dict`.

        Raises:
            GraphError: a part is missing, unknown or malformed.
        """
        if not isinstance(data, Mapping) or not {"ops", "edges"} <= set(data) <= {"ops", "edges", *FEATURES}:
            got = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
            raise GraphError(f"a graph has parts ops and edges, and may have {', '.join(FEATURES)}; got {got}")
        return cls(**data)

    def _bytes(self) -> bytes:
        parts: list[NDArray[Any]] = [self.ops, self.edges]
        given = [getattr(self, name) for name in FEATURES]
        parts += [x for x in given if x is not None]
        widths = [-1 if x is None else x.shape[-1] for x in given]
        head = np.array([len(self.ops), len(self.edges), *widths], np.int32)
        return b"".join([head.tobytes(), *(part.tobytes() for part in parts)])


def check_acyclic(edges: NDArray[np.integer[Any]], nodes: int) -> None:
    """Raise a GraphError when the edges close a cycle."""
    if not len(edges) or bool((edges[:, 0] < edges[:, 1]).all()):
        return
    waiting = np.bincount(edges[:, 1], minlength=nodes)
    order = np.argsort(edges[:, 0], kind="stable")
    targets, starts = edges[order, 1], np.searchsorted(edges[order, 0], np.arange(nodes + 1))
    ready, seen = list(np.flatnonzero(waiting == 0)), 0
    while ready:
        node = ready.pop()
        seen += 1
        for target in targets[starts[node] : starts[node + 1]]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    if seen < nodes:
        raise GraphError(
            f"the graph has a cycle through {nodes - seen} of its {nodes} nodes; expected a directed acyclic graph"
        )


def whole_numbers(values: Any, what: str) -> NDArray[np.int64]:
    """``values`` as an array, or a GraphError that calls them ``what``."""
    array = _array(values, what)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iub":
        raise GraphError(f"{what} are of type {array.dtype}; expected whole numbers")
    return array.astype(np.int64)


def edge_matrix(values: Any) -> NDArray[np.bool_]:
    """Where ``values`` are not 0."""
    array = _array(values, "rows of an adjacency")
    if array.dtype.kind not in "iubf":
        raise GraphError(f"an adjacency is of type {array.dtype}; expected numbers, 0 where there is no edge")
    return np.asarray(array != 0, np.bool_)


def _array(values: Any, what: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise GraphError(f"{what} are of unequal length; expected rows of one length") from None


def _numbers(name: str, value: ArrayLike | None, dimensions: int, nodes: int) -> NDArray[np.float32] | None:
    if value is None:
        return None
    try:
        array = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise GraphError(f"{name} of a graph are no table of numbers") from None
    if array.ndim != dimensions or (dimensions == 2 and len(array) != nodes):
        raise GraphError(f"{name} have shape {array.shape}; expected {f'({nodes}, K)' if dimensions == 2 else '(F,)'}")
    if not np.isfinite(array).all():
        raise GraphError(f"{name} of a graph hold a value that is no number")
    if name == "shapes" and array.shape[1] != 4:
        raise GraphError(f"shapes have shape {array.shape}; expected ({nodes}, 4): fill up shorter ones with zeros")
    if name == "costs" and (array.shape[1] != 3 or array.min(initial=0) < 0):
        raise GraphError(
            f"costs have shape {array.shape}, the least is {array.min(initial=0):g}; expected ({nodes}, 3): FLOPs,"
            " parameters and memory access, none below 0"
        )
    return _frozen(array + np.float32(0), np.float32)  # -0 becomes 0: equal numbers, equal bytes


def _checked(operations: Any, largest: int) -> tuple[Operation, ...]:
    table = tuple(operations) if isinstance(operations, Iterable) else ()
    if len(table) <= largest or not all(isinstance(each, Operation) for each in table):
        raise GraphError(
            f"operations are {str(operations)[:60]}; expected an Operation for each index up to {largest}; described()"
            " takes names too"
        )
    return table


def _frozen(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    copy = np.array(array, dtype=kind, order="C")
    copy.flags.writeable = False
    return copy


def _rebuild(data: Mapping[str, Any], operations: tuple[Operation, ...] | None) -> Graph:
    return Graph(**data, operations=operations)
