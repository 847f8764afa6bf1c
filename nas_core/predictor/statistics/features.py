"""Statistics of graphs: counts of operations, edges and paths, and node features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.graph import GraphError, Graphs, Operation
from nas_core.graph.operation import KINDS
from nas_core.predictor.artifact import below
from nas_core.predictor.prior import Prior
from nas_core.predictor.statistics.operation_features import FEATURES, operation_features, subset_statistics

Array = NDArray[np.float64]
INF = 1e9
MAX_KINDS = 6  # maximum number of operation types for which all sets are used


def sets_of(inner: NDArray[np.int64], kinds: int) -> NDArray[np.bool_]:
    """Return S sets of operation types, as masks ``(S, kinds)``.

    These are all sets. For more than six types, they are single types, all types but one, and all types.

    Args:
        inner: ascending types of nodes other than input and output.
        kinds: number of all types.
    """
    if len(inner) <= MAX_KINDS:
        subsets = [set(subset) for size in range(1, len(inner) + 1) for subset in combinations(inner.tolist(), size)]
    else:
        union = set(inner.tolist())
        subsets = [{kind} for kind in inner.tolist()] + [union - {kind} for kind in inner.tolist()] + [union]
    sets = np.zeros((len(subsets), kinds), np.bool_)
    for row, subset in zip(sets, subsets, strict=True):
        row[sorted(subset)] = True
    return sets


MAX_LEVELS = 64  # maximum number of values of an attribute whose values are counted
MAX_COUNTS = 4096


def levels_of(attributes: NDArray[np.float32], kinds: int) -> list[NDArray[np.float32]]:
    """Return the counted values of each of A attributes ``(nodes, A)``, none for one or too many values.

    Args:
        kinds: number of operation types.
    """
    levels = [np.unique(column) for column in attributes.T]
    selected = [values if 1 < len(values) <= MAX_LEVELS else values[:0] for values in levels]
    while sum(map(len, selected)) * kinds > MAX_COUNTS:
        longest = max(range(len(selected)), key=lambda column: len(selected[column]))
        selected[longest] = selected[longest][:0]
    return selected


def level_counts(column: Array, kinds: Array, levels: NDArray[np.float32]) -> Array:
    """Return how many nodes have each of V attribute values, by one-hot type ``(G, N, K)``: ``(G, V K)``."""
    equal = (column[..., None].astype(np.float32) == levels).astype(np.float64)
    counts: Array = np.einsum("gnv,gnk->gvk", equal, kinds).reshape(len(column), -1)
    return counts


def sums_per_kind(values: Array, kinds: Array) -> Array:
    """Return sum and mean ``(G, 2 A K)`` of A values of nodes ``(G, N, A)``, by one-hot type ``(G, N, K)``."""
    sums = np.einsum("gna,gnk->gak", values, kinds)
    means = sums / np.maximum(kinds.sum(1), 1)[:, None]
    return np.concatenate([sums.reshape(len(values), -1), means.reshape(len(values), -1)], 1)


def path_length_statistics(edges: Array, kinds: Array, present: NDArray[np.bool_]) -> Array:
    """Return sum and mean ``(G, 4 K)`` of the lengths of the longest paths to and from a node, by operation type.

    Args:
        edges, kinds: as in :func:`subset_statistics`.
    """
    count, width = present.shape
    before, after = np.zeros((count, width)), np.zeros((count, width))
    for node in range(1, width):
        before[:, node] = ((before[:, :node] + 1) * edges[:, :node, node]).max(1)
    for node in range(width - 2, -1, -1):
        after[:, node] = ((after[:, node + 1 :] + 1) * edges[:, node, node + 1 :]).max(1)
    return sums_per_kind(np.stack([before, after], 2), kinds)


def padded(graphs: Graphs, values: NDArray[np.float32], width: int) -> Array:
    """Pad values ``(nodes of all graphs, A)`` with zeros to ``(G, width, A)``."""
    table = np.zeros((len(graphs), width, values.shape[1]))
    graph = np.repeat(np.arange(len(graphs)), graphs.sizes)
    first = np.concatenate([[0], np.cumsum(graphs.sizes)])
    table[graph, np.arange(len(values)) - np.repeat(first[:-1], graphs.sizes)] = values
    return table


CELLS = 2**26  # maximum number of values in a table of statistics (512 MiB)


def graph_statistics(graphs: Graphs, operations: int) -> Array:
    """Return statistics ``(G, F)`` of graphs in topological order.

    They count operations, pairs and triples of operations along edges, edges of each operation, neighbours of the first
    and last node, and paths between these, with their lengths and operations.

    Args:
        operations: number of operation types.
    """
    if len(graphs.ops) and int(graphs.ops.max()) >= operations:
        raise GraphError(f"a graph has operation index {int(graphs.ops.max())}; expected 0 to {operations - 1}")
    if (graphs.edges[:, 0] >= graphs.edges[:, 1]).any():
        raise GraphError("an edge leads to an earlier node; give graphs in topological order")
    chunk = max(1, min(20_000, CELLS // operations**3))
    chunks = [
        np.concatenate(list(_blocks(graphs[start : start + chunk], operations)), 1)
        for start in range(0, len(graphs), chunk)
    ]
    return np.concatenate(chunks) if chunks else np.zeros((0, statistics_count(operations)))


def statistics_count(operations: int) -> int:
    return operations**3 + operations**2 + 8 * operations + 7


def _blocks(graphs: Graphs, operations: int) -> Iterator[Array]:
    dense = graphs.dense()
    edges = dense.adjacency.astype(np.float64)
    count, width = dense.ops.shape
    present = np.arange(width) < dense.sizes[:, None]
    kinds = np.eye(operations)[dense.ops] * present[..., None]
    rows, last = np.arange(count), dense.sizes - 1
    incoming, outgoing = edges.transpose(0, 2, 1) @ kinds, edges @ kinds  # (G, N, K) kinds of parents and children
    yield kinds.sum(1)
    yield np.einsum("gik,gil->gkl", kinds, outgoing).reshape(count, -1)
    yield np.einsum("gik,gil,gim->gkml", incoming, outgoing, kinds, optimize=True).reshape(count, -1)
    in_degree, out_degree = edges.sum(1), edges.sum(2)
    yield np.einsum("gi,gik->gk", in_degree, kinds)
    yield np.einsum("gi,gik->gk", out_degree, kinds)
    yield incoming[rows, last]
    yield outgoing[:, 0]
    yield np.stack([dense.sizes, in_degree.sum(1), in_degree[rows, last], out_degree[:, 0]], 1)
    yield _paths(edges, kinds, rows, last)


def _paths(edges: Array, kinds: Array, rows: NDArray[np.int64], last: NDArray[np.int64]) -> Array:
    count, width, operations = kinds.shape
    paths, longest, shortest = np.zeros((count, width)), np.full((count, width), -INF), np.full((count, width), INF)
    path_sums = np.zeros((count, width, operations))
    maximum, minimum = np.full_like(path_sums, -INF), np.full_like(path_sums, INF)
    paths[:, 0], longest[:, 0], shortest[:, 0], maximum[:, 0], minimum[:, 0] = 1, 0, 0, 0, 0
    for node in range(1, width):
        parents = edges[:, :node, node]
        connected = parents > 0
        paths[:, node] = (parents * paths[:, :node]).sum(1)
        path_sums[:, node] = (
            np.einsum("gi,gik->gk", parents, path_sums[:, :node]) + paths[:, node, None] * kinds[:, node]
        )
        longest[:, node] = np.where(connected, longest[:, :node], -INF).max(1) + 1
        shortest[:, node] = np.where(connected, shortest[:, :node], INF).min(1) + 1
        maximum[:, node] = np.where(connected[..., None], maximum[:, :node], -INF).max(1) + kinds[:, node]
        minimum[:, node] = np.where(connected[..., None], minimum[:, :node], INF).min(1) + kinds[:, node]
    ends = paths[rows, last]
    connected = ends > 0
    lengths = np.stack([np.log1p(ends), longest[rows, last], shortest[rows, last]], 1)
    on_paths = np.concatenate(
        [path_sums[rows, last] / np.maximum(ends, 1)[:, None], maximum[rows, last], minimum[rows, last]], 1
    )
    columns = np.concatenate([lengths, on_paths], 1)
    columns[~connected] = -1.0
    return columns


FEW_OPERATIONS = 8  # maximum number of operation indices for which unseen ones have columns too
NODE_FEATURES = ("attributes", "shapes", "costs", "static")
CHUNK = 5_000  # maximum number of graphs per chunk


@dataclass(frozen=True)
class Vocabulary:
    """Operation types, sets of them, and attribute values, which define the columns of graph statistics."""

    kinds: NDArray[np.int64]
    """``(K,)`` ascending operation indices that are types; all other operations form one more type"""
    sets: NDArray[np.bool_]
    """``(S, K + 1)`` sets of operation types for statistics of paths"""
    levels: tuple[NDArray[np.float32], ...]
    """Counted values of each attribute"""
    widths: tuple[int, ...]
    """Number of columns of each of :data:`NODE_FEATURES`"""

    @classmethod
    def of(cls, graphs: Graphs) -> Vocabulary:
        indices = int(graphs.ops.max()) + 1
        kinds = np.arange(indices) if indices <= FEW_OPERATIONS else np.unique(graphs.ops).astype(np.int64)
        last = np.cumsum(graphs.sizes) - 1
        between = np.ones(len(graphs.ops), np.bool_)
        between[last] = between[last - graphs.sizes + 1] = False
        inner = np.searchsorted(kinds, np.unique(graphs.ops[between])).astype(np.int64)
        attributes = graphs.attributes
        levels = () if attributes is None else tuple(levels_of(attributes, len(kinds) + 1))
        return cls(kinds, sets_of(inner, len(kinds) + 1), levels, _widths(graphs))

    def __len__(self) -> int:
        kinds = len(self.kinds) + 1
        attributes, shapes, costs, static = self.widths
        per_kind = 4 + 2 * (attributes + shapes) + sum(map(len, self.levels))
        return statistics_count(kinds) + 6 * len(self.sets) + kinds * per_kind + costs + static

    @property
    def count_columns(self) -> range:
        """Indices of columns that count operations by type and attribute value."""
        kinds, counts = len(self.kinds) + 1, sum(map(len, self.levels))
        first = statistics_count(kinds) + 6 * len(self.sets) + kinds * (4 + 2 * self.widths[0])
        return range(first, first + counts * kinds)

    @property
    def static(self) -> int:
        return self.widths[-1]

    def describe(self, graphs: Graphs) -> Array:
        """Return statistics ``(G, F)``."""
        if (graph_widths := _widths(graphs)) != self.widths:
            expected, found = (
                ", ".join(f"{count} {name}" for name, count in zip(NODE_FEATURES, widths, strict=True) if count)
                or "none"
                for widths in (self.widths, graph_widths)
            )
            raise GraphError(
                f"graphs have the features {found}, but the predictor was fitted to graphs with {expected}; read them"
                " as the training graphs"
            )
        index = np.minimum(np.searchsorted(self.kinds, graphs.ops), len(self.kinds) - 1)
        ops = np.where(self.kinds[index] == graphs.ops, index, len(self.kinds)).astype(np.int16)
        encoded = replace(graphs, ops=ops)
        largest = int(graphs.sizes.max(initial=1))
        limit = 2**25 // (largest**2 * max(len(self.sets), 8))
        chunk = max(1, min(CHUNK, CELLS // (len(self.kinds) + 1) ** 3, limit))
        chunks = [
            np.concatenate(list(self._blocks(encoded[start : start + chunk])), 1)
            for start in range(0, len(graphs), chunk)
        ]
        return np.concatenate(chunks) if chunks else np.zeros((0, len(self)))

    def to_tensors(self) -> dict[str, Tensor]:
        levels = [torch.from_numpy(values) for values in self.levels]
        return {
            "kinds": torch.from_numpy(self.kinds),
            "sets": torch.from_numpy(self.sets),
            "widths": torch.tensor(self.widths),
            "level_counts": torch.tensor([len(values) for values in levels], dtype=torch.int64),
            "levels": torch.cat([torch.zeros(0), *levels]),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Vocabulary:
        kinds, sets, widths, counts, levels = (
            tensors[name] for name in ("kinds", "sets", "widths", "level_counts", "levels")
        )
        values = tuple(chunk.numpy() for chunk in torch.split(levels, counts.tolist()))
        return cls(kinds.numpy(), sets.numpy(), values, tuple(widths.tolist()))

    def _blocks(self, graphs: Graphs) -> Iterator[Array]:
        operations = len(self.kinds) + 1
        yield graph_statistics(graphs, operations)
        dense = graphs.dense()
        edges, width = dense.adjacency.astype(np.float64), dense.ops.shape[1]
        present = np.arange(width) < dense.sizes[:, None]
        kinds = np.eye(operations)[dense.ops] * present[..., None]
        yield subset_statistics(edges, kinds, dense.sizes - 1, self.sets)
        yield path_length_statistics(edges, kinds, present)
        if graphs.attributes is not None:
            attributes = padded(graphs, graphs.attributes, width)
            yield sums_per_kind(attributes, kinds)
            yield from (level_counts(attributes[..., i], kinds, v) for i, v in enumerate(self.levels) if len(v))
        if graphs.shapes is not None:
            yield sums_per_kind(np.arcsinh(padded(graphs, graphs.shapes, width)), kinds)
        if graphs.costs is not None:
            yield np.log1p(padded(graphs, graphs.costs, width).sum(1))
        if graphs.static is not None:
            yield np.arcsinh(graphs.static.astype(np.float64))


def _widths(graphs: Graphs) -> tuple[int, ...]:
    features = (getattr(graphs, name) for name in NODE_FEATURES)
    return tuple(0 if values is None else values.shape[1] for values in features)


LAST = 2**31


@dataclass(frozen=True)
class Description:
    """Columns of graph statistics, from a prior, :func:`operation_features` and a :class:`Vocabulary`."""

    vocabulary: Vocabulary
    operations: tuple[Operation, ...] | None = None
    """Descriptions of the operations of the training graphs; None if there are none"""
    prior: Prior | None = None

    @classmethod
    def of(cls, graphs: Graphs, prior: Prior | None = None) -> Description:
        if prior is not None and graphs.operations is None:
            operation_features(graphs)  # raises
        return cls(Vocabulary.of(graphs), graphs.operations, prior)

    @property
    def prior_width(self) -> int:
        """Number of columns of the prior; the first is its prediction."""
        return 0 if self.prior is None else self.prior.width

    @property
    def groups(self) -> tuple[range, ...]:
        """Groups of columns for Gaussian processes: features of described operations (if any), all but the prior's."""
        all_columns = range(self.prior_width, LAST)
        return (
            (all_columns,)
            if self.operations is None
            else (range(self.prior_width, self.prior_width + len(FEATURES)), all_columns)
        )

    @property
    def count_columns(self) -> slice:
        first, columns = len(self) - len(self.vocabulary), self.vocabulary.count_columns
        return slice(first + columns.start, first + columns.stop)

    def __len__(self) -> int:
        return self.prior_width + (0 if self.operations is None else len(FEATURES)) + len(self.vocabulary)

    def describe(self, graphs: Graphs) -> Array:
        """Return statistics ``(G, F)``."""
        blocks = [self.vocabulary.describe(graphs)]
        if self.operations is not None:
            features = operation_features(self._with_descriptions(graphs))
            blocks.insert(0, features)
            if self.prior is not None:
                blocks.insert(0, self.prior.columns(features))
        return np.concatenate(blocks, 1)

    def _with_descriptions(self, graphs: Graphs) -> Graphs:
        """Return graphs with descriptions of operations, from the training graphs if they are missing."""
        assert self.operations is not None
        ops = np.unique(graphs.ops).tolist()
        table = graphs.operations or self.operations
        for op in ops:
            learned, operation = (named[op] if op < len(named) else None for named in (self.operations, table))
            if learned and operation and learned != operation:
                raise GraphError(
                    f"operation {op} of these graphs is {operation}, but in the training graphs it is {learned}; read"
                    " both with the same reader"
                )
        all_operations = (*table, *self.operations[len(table) :])
        return replace(
            graphs, operations=(*all_operations, *[Operation("end")] * (max(ops, default=0) + 1 - len(all_operations)))
        )

    def to_tensors(self) -> dict[str, Tensor]:
        named = self.vocabulary.to_tensors()
        if self.operations is not None:
            rows = [(KINDS.index(operation.kind), *astuple(operation)[1:]) for operation in self.operations]
            named["operations"] = torch.tensor(rows, dtype=torch.float64)
        return named if self.prior is None else named | {f"prior.{k}": v for k, v in self.prior.to_tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Description:
        vocabulary, parts = Vocabulary.from_tensors(tensors), below("prior.", tensors)
        if "operations" not in tensors:
            return cls(vocabulary)
        rows = tensors["operations"]
        return cls(vocabulary, tuple(map(_operation, rows.tolist())), Prior.from_tensors(parts) if parts else None)


def _operation(row: list[float]) -> Operation:
    types = {"int": int, "float": float, "bool": bool}
    names = [field for field in fields(Operation) if field.name != "kind"]
    values = {field.name: types[str(field.type)](value) for field, value in zip(names, row[1:], strict=True)}
    return Operation(KINDS[int(row[0])], **values)
