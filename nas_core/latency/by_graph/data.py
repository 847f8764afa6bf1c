"""Measured latencies of whole networks of several families, as graphs: what latency models learn from."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import DataError, unknown_choice
from nas_core.files import DAMAGED_ARCHIVE, atomic_output, open_npz
from nas_core.graph import Graphs

_GRAPHS = ("ops", "edges", "sizes", "edge_counts", "attributes", "shapes", "costs", "static")
_ROWS = ("latency_ms", "families", "names", "held_out")
_KINDS = {"latency_ms": "iuf", "families": "U", "names": "U", "held_out": "b"}
"""What the rows of a file are: numbers, texts, switches."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NetworkLatencies:
    """G networks in the order of their file."""

    graphs: Graphs
    latency_ms: NDArray[np.float64]
    """``(G,)``"""
    families: NDArray[np.str_]
    """``(G,)`` name of the family each network belongs to."""
    names: NDArray[np.str_]
    """``(G,)`` what a network is called in its file."""
    held_out: NDArray[np.bool_]
    """``(G,)`` the test part of the in-domain split."""
    skipped: tuple[tuple[str, str], ...] = field(default=())
    """Networks that could not be read, and why."""

    def __post_init__(self) -> None:
        rows = {name: len(getattr(self, name)) for name in _ROWS}
        if len({*rows.values(), len(self.graphs)}) > 1:
            raise DataError(f"{len(self.graphs)} graphs with {rows}; expected one of each per graph")
        if not len(self.graphs):
            raise DataError("a data set without networks; expected at least one")
        if not (np.isfinite(self.latency_ms).all() and (self.latency_ms > 0).all()):
            raise DataError("a latency is not above 0 ms; remove such networks")

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def family_names(self) -> list[str]:
        """Each once, in the order of the file."""
        return list(dict.fromkeys(self.families.tolist()))

    def take(self, indices: ArrayLike) -> NetworkLatencies:
        """Those networks: indices, or a mask ``(G,)``."""
        chosen = np.asarray(indices)
        rows = {name: getattr(self, name)[chosen] for name in _ROWS}
        return NetworkLatencies(self.graphs.take(chosen), **rows)

    def without_repeats(self, source: str | Path) -> NetworkLatencies:
        """The first of each network, told in a warning that names the ``source``: one that was learned must not judge.
        Networks are equal if their names and their graphs are.
        """
        if len(set(self.names.tolist())) == len(self):
            return self
        keys = zip(self.names.tolist(), self.graphs.distinct()[1].tolist(), strict=True)
        first: dict[tuple[str, int], int] = {}
        for index, key in enumerate(keys):
            first.setdefault(key, index)
        if len(first) == len(self):
            return self
        _log.warning(
            "%s: %d of %d networks are repeats of earlier ones; they are left out",
            source,
            len(self) - len(first),
            len(self),
        )
        return replace(self.take(list(first.values())), skipped=self.skipped)

    def in_domain(self) -> tuple[NetworkLatencies, NetworkLatencies]:
        """Train and test with all families in both.

        Raises:
            DataError: no network is held out, or all are.
        """
        if self.held_out.all() or not self.held_out.any():
            raise DataError(
                f"{int(self.held_out.sum())} of {len(self)} networks are held out; expected some, such as the last "
                "tenth of each family, of ten networks at least"
            )
        return self.take(~self.held_out), self.take(self.held_out)

    def out_of_domain(self, family: str) -> tuple[NetworkLatencies, NetworkLatencies]:
        """Train on all other families, test on all of this one.

        Raises:
            UnknownChoiceError: no such family. DataError: there is no other.
        """
        names = self.family_names
        if family not in names:
            raise unknown_choice("family of networks", family, names)
        if len(names) < 2:
            raise DataError(f"all networks are of family {family!r}; expected two families at least")
        return self.take(self.families != family), self.take(self.families == family)

    def save(self, path: str | Path) -> None:
        """Write an .npz file, whole or not at all; what was skipped is left out.

        Raises:
            NasExtError: it cannot be written.
        """
        parts = {name: getattr(self.graphs, name) for name in _GRAPHS if getattr(self.graphs, name) is not None}
        parts |= {name: getattr(self, name) for name in _ROWS}
        with atomic_output(path) as beside, beside.open("wb") as file:
            np.savez_compressed(file, **parts)

    @classmethod
    def load(cls, path: str | Path) -> NetworkLatencies:
        """Inverse of :meth:`save`.

        Raises:
            DataError: the file is missing, damaged or another one.
        """
        try:
            with open_npz(path) as file:
                if absent := [name for name in (*_GRAPHS[:4], *_ROWS) if name not in file.files]:
                    raise ValueError(f"it lacks {', '.join(absent)}")
                graphs = Graphs.from_arrays({name: file[name] for name in _GRAPHS if name in file.files})
                rows: dict[str, Any] = {name: file[name] for name in _ROWS}
                if strange := [name for name, kinds in _KINDS.items() if not _is_row(rows[name], kinds)]:
                    raise ValueError(f"{strange[0]} has shape {rows[strange[0]].shape} of {rows[strange[0]].dtype}")
                return cls(graphs, **{**rows, "latency_ms": rows["latency_ms"].astype(np.float64)})
        except DAMAGED_ARCHIVE as error:
            raise DataError(f"{path} is no .npz file of network latencies ({error}); make it anew") from None


def _is_row(values: NDArray[np.generic], kinds: str) -> bool:
    return values.ndim == 1 and values.dtype.kind in kinds


def last_of_each(families: Sequence[str], share: float = 0.1) -> NDArray[np.bool_]:
    """``(G,)`` True for the last tenth of each family in the order given: 200 of 2,000, as NNLQP's split."""
    names = np.asarray(families)
    mask = np.zeros(len(names), np.bool_)
    for family in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == family)
        mask[rows[len(rows) - round(share * len(rows)) :]] = True
    return mask
