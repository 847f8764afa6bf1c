"""Graphs and measured latencies of networks, train and test splits, and metrics by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError
from nas_core.files.archives import DAMAGED_ARCHIVE, open_npz
from nas_core.files.writing import atomic_output
from nas_core.graph import Graphs
from nas_core.predictor.metrics import accuracy_within, mape

_GRAPHS = ("ops", "edges", "sizes", "edge_counts", "attributes", "shapes", "costs", "static")
_ROWS = ("latency_ms", "families", "names", "held_out")


@dataclass(frozen=True)
class NetworkLatencies:
    """Graphs and measured latencies of G networks."""

    graphs: Graphs
    latency_ms: NDArray[np.float64]
    """``(G,)``"""
    families: NDArray[np.str_]
    """``(G,)`` family of each network, such as ``vgg``"""
    names: NDArray[np.str_]
    """``(G,)``"""
    held_out: NDArray[np.bool_]
    """``(G,)`` True for the test networks of :meth:`in_domain`."""
    skipped: tuple[tuple[str, str], ...] = field(default=())
    """Names and reasons of networks that cannot be used."""

    def __post_init__(self) -> None:
        rows = {name: len(getattr(self, name)) for name in _ROWS}
        if len({*rows.values(), len(self.graphs)}) > 1:
            raise DataError(f"got {len(self.graphs)} graphs with {rows}; expected one value of each per graph")
        if not len(self.graphs):
            raise DataError("the data set has no networks; give at least one")
        if len(invalid := np.flatnonzero(~(np.isfinite(self.latency_ms) & (self.latency_ms > 0)))):
            network = f"network {self.names[invalid[0]]} (index {invalid[0]})"
            raise DataError(f"latency of {network} is {self.latency_ms[invalid[0]]}, expected ms above 0; remove it")

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def family_names(self) -> list[str]:
        return list(dict.fromkeys(self.families.tolist()))

    def take(self, indices: ArrayLike) -> NetworkLatencies:
        """Return the networks at indices, or where a mask ``(G,)`` is True."""
        selected = np.asarray(indices)
        rows = {name: getattr(self, name)[selected] for name in _ROWS}
        return NetworkLatencies(self.graphs.take(selected), **rows)

    def in_domain(self) -> tuple[NetworkLatencies, NetworkLatencies]:
        """Split into training networks and test networks (:attr:`held_out`)."""
        if self.held_out.all() or not self.held_out.any():
            raise DataError(
                f"{int(self.held_out.sum())} of {len(self)} networks are held out; expected some, but not all: the last"
                " tenth of each family is held out, so give at least ten networks of a family"
            )
        return self.take(~self.held_out), self.take(self.held_out)

    def save(self, path: str | Path) -> None:
        """Write an .npz file, without :attr:`skipped`."""
        arrays = {name: getattr(self.graphs, name) for name in _GRAPHS if getattr(self.graphs, name) is not None}
        arrays |= {name: getattr(self, name) for name in _ROWS}
        with atomic_output(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> NetworkLatencies:
        """Load a file of :meth:`save`."""
        try:
            with open_npz(path) as file:
                graphs = Graphs.from_arrays({name: file[name] for name in _GRAPHS if name in file.files})
                rows: dict[str, Any] = {name: file[name] for name in _ROWS}
                return cls(graphs, **rows)
        except DAMAGED_ARCHIVE as error:
            raise DataError(f"{path} is not an .npz file of network latencies ({error}); create it again") from None


def last_of_each(families: Sequence[str], share: float = 0.1) -> NDArray[np.bool_]:
    """Return a mask ``(G,)`` of the last fraction ``share`` of each family."""
    names = np.asarray(families)
    mask = np.zeros(len(names), np.bool_)
    for family in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == family)
        mask[rows[len(rows) - round(share * len(rows)) :]] = True
    return mask


@dataclass(frozen=True)
class FamilyQuality:
    """Metrics of ``count`` predictions."""

    count: int
    mape_percent: float
    """Mean absolute percentage error."""
    acc10_percent: float
    """Percentage of predictions within 10 % of the measurement."""


def family_quality(
    predicted_ms: ArrayLike, measured_ms: ArrayLike, families: Sequence[str] | NDArray[np.str_]
) -> dict[str, FamilyQuality]:
    """Evaluate predictions by family, as in NN-Former's latency tables (Tables 3 and 4).

    Returns:
        Metrics of each family, then ``average`` (mean over families) and ``all`` (all predictions together).
    """
    names, predicted, measured = np.asarray(families), np.asarray(predicted_ms), np.asarray(measured_ms)

    def row(mask: NDArray[np.bool_]) -> FamilyQuality:
        first, second = predicted[mask], measured[mask]
        return FamilyQuality(len(first), mape(first, second), accuracy_within(first, second))

    rows = {str(family): row(names == family) for family in dict.fromkeys(names.tolist())}
    overall = row(np.ones(len(names), np.bool_))
    errors, shares = zip(*((q.mape_percent, q.acc10_percent) for q in rows.values()), strict=True)
    average = FamilyQuality(len(names), float(np.mean(errors)), float(np.mean(shares)))
    return {**rows, "average": average, "all": overall}
