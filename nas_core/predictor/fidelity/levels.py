"""Which fidelities graphs were judged at: epochs, shares of the data, whatever grows with what a training costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError

__all__ = ["LEAST", "Levels", "checked_fidelity", "facts_of", "levels_of"]

LEAST = 5
"""Graphs of each fidelity."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The different fidelities, ascending, and that of each graph."""

    values: tuple[float, ...]
    """Two or more; the last is what will be predicted"""
    of: NDArray[np.int64]
    """``(G,)`` index of each graph's fidelity"""

    @property
    def highest(self) -> NDArray[np.int64]:
        """Indices of the graphs of the highest fidelity."""
        return np.flatnonzero(self.of == len(self.values) - 1)

    @property
    def counts(self) -> list[int]:
        """Graphs of each fidelity."""
        return [int(count) for count in np.bincount(self.of, minlength=len(self.values))]

    def __str__(self) -> str:
        pairs = zip(self.counts, self.values, strict=True)
        return ", ".join(f"{count} of {value:g}" for count, value in pairs)


def checked_fidelity(fidelity: ArrayLike, graphs: int) -> NDArray[np.float64]:
    """A finite number ``(G,)`` for each graph.

    Raises:
        DataError: something else, or another number of them.
    """
    try:
        values = np.asarray(fidelity, np.float64)
    except (TypeError, ValueError):
        raise DataError("fidelity is no row of numbers; expected one for each graph, such as its epochs") from None
    if values.shape != (graphs,):
        raise DataError(f"fidelity has shape {values.shape} for {graphs} graphs; expected one number for each graph")
    if len(wrong := np.flatnonzero(~np.isfinite(values))):
        raise DataError(
            f"fidelity {wrong[0]} is {values[wrong[0]]}; expected a finite number for each graph, such as its epochs"
        )
    return values


def levels_of(fidelity: ArrayLike, graphs: int) -> Levels | None:
    """The fidelities of so many graphs; None where all are equal.

    Raises:
        DataError: as of :func:`checked_fidelity`, or fewer than :data:`LEAST` graphs of a fidelity.
    """
    values, of = np.unique(checked_fidelity(fidelity, graphs), return_inverse=True)
    if len(values) < 2:
        return None
    levels = Levels(tuple(values.tolist()), of.astype(np.int64))
    few = [index for index, count in enumerate(levels.counts) if count < LEAST]
    if few:
        which = "the highest fidelity, which is predicted," if few[0] == len(values) - 1 else "fidelity"
        raise DataError(
            f"{which} {values[few[0]]:g} has {levels.counts[few[0]]} graph(s); expected {LEAST} or more of each: leave"
            " it out, or round fidelities to few values"
        )
    return levels


def facts_of(levels: Levels | None) -> dict[str, Any]:
    """What is worth keeping of them for the info of a predictor."""
    return {} if levels is None else {"fidelity": {"values": list(levels.values), "graphs": levels.counts}}
