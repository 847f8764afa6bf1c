"""Statistics of graphs that a model reads, in groups: by operation index, by what operations do, and of a prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.graph import GraphError, Graphs, Operation
from nas_core.graph.operation import KINDS
from nas_core.predictor.artifact import below
from nas_core.predictor.prior import Prior
from nas_core.predictor.statistics.features import (
    graph_statistics,
    graphs_at_once,
    level_counts,
    levels_of,
    padded,
    place_statistics,
    sets_of,
    statistics_count,
    subset_statistics,
    sums_per_kind,
)
from nas_core.predictor.statistics.operation_features import FEATURES, operation_features

Array = NDArray[np.float64]
FEW = 8
"""Up to this index + 1 all operations count as kinds, also those that no training graph has."""
READ = ("attributes", "shapes", "costs", "static")
CHUNK = 5_000
"""Graphs described at once, fewer where there are many kinds of operations or large graphs."""


@dataclass(frozen=True)
class Vocabulary:
    """Kinds of operations, sets of them, and values of attributes, that columns of statistics stand for."""

    kinds: NDArray[np.int64]
    """``(K,)`` ascending operation indices that count as kinds: those of the training graphs, or all below the largest
    where they are few. All others count as one more kind."""
    sets: NDArray[np.bool_]
    """``(S, K + 1)`` sets of kinds, whose ways through a graph are looked at"""
    levels: tuple[NDArray[np.float32], ...]
    """Values of each attribute that are counted one by one"""
    widths: tuple[int, ...]
    """Numbers that graphs have of each of :data:`READ`, 0: none"""

    @classmethod
    def of(cls, graphs: Graphs) -> Vocabulary:
        """That of training graphs, at least one."""
        below = int(graphs.ops.max()) + 1
        kinds = np.arange(below) if below <= FEW else np.unique(graphs.ops).astype(np.int64)
        last = np.cumsum(graphs.sizes) - 1
        between = np.ones(len(graphs.ops), np.bool_)
        between[last] = between[last - graphs.sizes + 1] = False
        inner = np.searchsorted(kinds, np.unique(graphs.ops[between])).astype(np.int64)
        attributes = graphs.attributes
        levels = () if attributes is None else tuple(levels_of(attributes, len(kinds) + 1))
        return cls(kinds, sets_of(inner, len(kinds) + 1), levels, _widths(graphs))

    def __len__(self) -> int:
        """How many statistics there are."""
        kinds = len(self.kinds) + 1
        attributes, shapes, costs, static = self.widths
        per_kind = 4 + 2 * (attributes + shapes) + sum(map(len, self.levels))
        return statistics_count(kinds) + 6 * len(self.sets) + kinds * per_kind + costs + static

    @property
    def counted(self) -> range:
        """Columns that count operations by kind and value of an attribute; empty where nothing is counted so."""
        kinds, counts = len(self.kinds) + 1, sum(map(len, self.levels))
        first = statistics_count(kinds) + 6 * len(self.sets) + kinds * (4 + 2 * self.widths[0])
        return range(first, first + counts * kinds)

    @property
    def static(self) -> int:
        """How many static features of whole networks stand at the end of the statistics."""
        return self.widths[-1]

    def describe(self, graphs: Graphs) -> Array:
        """``(G, F)`` statistics.

        Raises:
            GraphError: nodes do not stand in topological order, or graphs have other features than those it is of.
        """
        if (found := _widths(graphs)) != self.widths:
            had, have = (
                ", ".join(f"{count} {name}" for name, count in zip(READ, widths, strict=True) if count) or "none"
                for widths in (self.widths, found)
            )
            raise GraphError(f"graphs with these features of nodes and networks: {have}; it learned from graphs: {had}")
        place = np.minimum(np.searchsorted(self.kinds, graphs.ops), len(self.kinds) - 1)
        ops = np.where(self.kinds[place] == graphs.ops, place, len(self.kinds)).astype(np.int16)
        same = replace(graphs, ops=ops)
        largest = int(graphs.sizes.max(initial=1))
        chunk = min(graphs_at_once(len(self.kinds) + 1, CHUNK), max(1, 2**25 // (largest**2 * max(len(self.sets), 8))))
        parts = [
            np.concatenate(list(self._parts(same[start : start + chunk])), 1) for start in range(0, len(same), chunk)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self)))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
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
        """Invert :meth:`to_tensors`."""
        kinds, sets, widths, counts, levels = (
            tensors[name] for name in ("kinds", "sets", "widths", "level_counts", "levels")
        )
        values = tuple(part.numpy() for part in torch.split(levels, counts.tolist()))
        return cls(kinds.numpy(), sets.numpy(), values, tuple(widths.tolist()))

    def _parts(self, graphs: Graphs) -> Iterator[Array]:
        operations = len(self.kinds) + 1
        yield graph_statistics(graphs, operations)
        dense = graphs.dense()
        edges, width = dense.adjacency.astype(np.float64), dense.ops.shape[1]
        present = np.arange(width) < dense.sizes[:, None]
        kinds = np.eye(operations)[dense.ops] * present[..., None]
        yield subset_statistics(edges, kinds, dense.sizes - 1, self.sets)
        yield place_statistics(edges, kinds, present)
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
    found = (getattr(graphs, name) for name in READ)
    return tuple(0 if values is None else values.shape[1] for values in found)


LAST = 2**31
"""Beyond any column."""


@dataclass(frozen=True)
class Description:
    """What is told of each graph: columns of the prior first, then of what operations do, then of their indices."""

    vocabulary: Vocabulary
    operations: tuple[Operation, ...] | None = None
    """What the operations of the training graphs do, where they say it"""
    prior: Prior | None = None

    @classmethod
    def of(cls, graphs: Graphs, prior: Prior | None = None) -> Description:
        """That of training graphs, at least one.

        Raises:
            GraphError: the prior needs to know what operations do, and the graphs do not say.
        """
        if prior is not None and graphs.operations is None:
            operation_features(graphs)  # says what is missing
        return cls(Vocabulary.of(graphs), graphs.operations, prior)

    @property
    def told(self) -> int:
        """How many columns are the prior's, which every process reads; the first is all that it says in one."""
        return 0 if self.prior is None else self.prior.width

    @property
    def groups(self) -> tuple[range, ...]:
        """Columns that a process draws its own from: what operations do, and all to the last; the latter alone where
        nobody says what they do."""
        every = range(self.told, LAST)
        return (every,) if self.operations is None else (range(self.told, self.told + len(FEATURES)), every)

    @property
    def counted(self) -> slice:
        """Columns that count operations by kind and value of an attribute."""
        first, own = len(self) - len(self.vocabulary), self.vocabulary.counted
        return slice(first + own.start, first + own.stop)

    def __len__(self) -> int:
        """How many statistics there are."""
        return self.told + (0 if self.operations is None else len(FEATURES)) + len(self.vocabulary)

    def describe(self, graphs: Graphs) -> Array:
        """``(G, F)`` statistics.

        Raises:
            GraphError: operations of these graphs do something else than those of the training graphs; and as of
                :meth:`Vocabulary.describe`.
        """
        parts = [self.vocabulary.describe(graphs)]
        if self.operations is not None:
            features = operation_features(self._known(graphs))
            parts.insert(0, features)
            if self.prior is not None:
                parts.insert(0, self.prior.columns(features))
        return np.concatenate(parts, 1)

    def _known(self, graphs: Graphs) -> Graphs:
        """The graphs with a word on all their operations; those without one mean what the training graphs meant."""
        assert self.operations is not None
        ops = np.unique(graphs.ops).tolist()
        table = graphs.operations or self.operations
        for op in ops:
            learned, given = (each[op] if op < len(each) else None for each in (self.operations, table))
            if learned and given and learned != given:
                raise GraphError(f"operation {op} of these graphs is {given}; of those that it learned from {learned}")
        end, most = Operation("end"), max([*ops, len(self.operations) - 1, len(table) - 1])
        whole = (*table, *self.operations[len(table) :])
        return replace(graphs, operations=(*whole, *(end for _ in range(most + 1 - len(whole)))))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        named = self.vocabulary.to_tensors()
        if self.operations is not None:
            rows = [(KINDS.index(each.kind), *astuple(each)[1:]) for each in self.operations]
            named["operations"] = torch.tensor(rows, dtype=torch.float64)
        return named if self.prior is None else named | {f"prior.{k}": v for k, v in self.prior.to_tensors().items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Description:
        """Invert :meth:`to_tensors`."""
        vocabulary, parts = Vocabulary.from_tensors(tensors), below("prior.", tensors)
        if "operations" not in tensors:
            return cls(vocabulary)
        rows = tensors["operations"]
        return cls(vocabulary, tuple(map(_operation, rows.tolist())), Prior.from_tensors(parts) if parts else None)


def _operation(row: list[float]) -> Operation:
    """Return the operation of a row of numbers, kinds by index."""
    types = {"int": int, "float": float, "bool": bool}
    names = [field for field in fields(Operation) if field.name != "kind"]
    values = {field.name: types[str(field.type)](value) for field, value in zip(names, row[1:], strict=True)}
    return Operation(KINDS[int(row[0])], **values)
