"""What graph statistics tell apart: learned from training graphs, applied to any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.graph import GraphError, Graphs
from nas_core.predictor.statistics.features import graph_statistics, graphs_at_once, statistics_count
from nas_core.predictor.statistics.numbers import level_counts, levels_of, padded, place_statistics, sums_per_kind
from nas_core.predictor.statistics.subsets import sets_of, subset_statistics

__all__ = ["Vocabulary"]

Array = NDArray[np.float64]
FEW = 8
"""Up to this index + 1 all operations count as kinds, also those that no training graph has."""
FEATURES = ("attributes", "shapes", "costs", "static")
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
    """Numbers that graphs have of each of :data:`FEATURES`, 0: none"""

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
                ", ".join(f"{count} {name}" for name, count in zip(FEATURES, widths, strict=True) if count) or "none"
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
        """The inverse of :meth:`to_tensors`.

        Raises:
            KeyError: a tensor is missing.
            DataError: they do not fit together.
        """
        kinds = tensors["kinds"]
        if kinds.dtype != torch.int64 or kinds.ndim != 1 or not 0 < len(kinds) <= 2**15 or (kinds.diff() <= 0).any():
            raise DataError(f"kinds of operations are {kinds.dtype} of shape {tuple(kinds.shape)}; expected indices")
        sets, widths, counts, levels = (tensors[name] for name in ("sets", "widths", "level_counts", "levels"))
        fit = (
            sets.dtype == torch.bool and sets.ndim == 2 and sets.shape[1] == len(kinds) + 1
            and widths.dtype == counts.dtype == torch.int64 and widths.shape == (len(FEATURES),) and widths.min() >= 0
            and counts.shape == (int(widths[0]),) and levels.dtype == torch.float32 and levels.isfinite().all()
            and levels.ndim == 1 and int(counts.sum()) == len(levels)
            and (counts >= 0).all()
        )  # fmt: skip
        if not fit:
            raise DataError("sets of operations, widths or levels of attributes do not fit together")
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
    found = (getattr(graphs, name) for name in FEATURES)
    return tuple(0 if values is None else values.shape[1] for values in found)
