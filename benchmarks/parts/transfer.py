"""Latency on a held-out device by linear predictors, from few networks measured there and what other devices tell."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.published import LatencyTable
from nas_core.predictor import ACCURACY_MODELS

Array = NDArray[np.float64]
PENALTIES = 10.0 ** np.arange(-7, 2)
SHARES = (0.3, 1.0, 3.0, 10.0)
"""How freely the devices' columns are used, compared with the operations'."""
OWN = 900
"""Networks measured on each source device where not all are."""
_BATCH = re.compile(r"_(1|32|64|256)$")


@dataclass(frozen=True, eq=False)
class Case:
    """A device held out: ``size`` networks measured there are known, all others are asked for. The same chip at another
    batch size is no source."""

    table: LatencyTable
    device: str
    size: int
    draw: int
    """Seed of the order of the networks; the first ``size`` are known"""
    most: int | None = None
    """Most networks of the test; None: all others"""

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.random.default_rng([self.draw, 22]).permutation(len(self.table.ops))

    @property
    def train(self) -> NDArray[np.int64]:
        return self._order[: self.size]

    @property
    def test(self) -> NDArray[np.int64]:
        return self._order[self.size :][: self.most]

    @property
    def latency_ms(self) -> Array:
        """``(G,)`` on the held-out device."""
        return self.table.latency_ms[:, self.table.devices.index(self.device)]

    @property
    def sources(self) -> list[int]:
        """Columns of the other chips."""
        return [i for i, name in enumerate(self.table.devices) if chip(name) != chip(self.device)]


def chip(device: str) -> str:
    """A device's name without its batch size."""
    return _BATCH.sub("", device)


def places(ops: NDArray[np.int64]) -> Array:
    """``(G, L K + K)``: which of the K operations is at each of the L places, and how many there are of each."""
    here = np.eye(int(ops.max()) + 1)[ops]
    return np.concatenate([here.reshape(len(ops), -1), here.sum(1)], 1)


def ridge(x: Array, y: Array, weights: Array, asked: Array) -> tuple[float, Array]:
    """Weighted ridge regression with a free constant; of :data:`PENALTIES` the one that is best with each row left out
    in turn.

    Returns:
        The weighted mean square of those errors, for weights about 1, and predictions ``(B,)`` for ``asked``
        ``(B, F)``.
    """
    share = weights / weights.sum()
    root, mean_x, mean_y = np.sqrt(share), share @ x, share @ y
    left, sizes, right = np.linalg.svd((x - mean_x) * root[:, None], full_matrices=False)
    wanted = (y - mean_y) * root
    along = left.T @ wanted
    best, kept = np.inf, np.ones_like(sizes)
    for penalty in PENALTIES:
        kept_here = sizes**2 / (sizes**2 + penalty)
        free = np.maximum(1 - share - left**2 @ kept_here, 1e-9)
        error = float(np.mean(((wanted - left @ (kept_here * along)) / free) ** 2) * weights.sum())
        if error < best:
            best, kept = error, kept_here
    slopes = right.T @ (kept * along / np.maximum(sizes, 1e-12))
    return best, (asked - mean_x) @ slopes + mean_y


def from_scratch(case: Case) -> Array:
    """Milliseconds as a sum over operations, by least relative squares."""
    return _relative([places(case.table.ops)], case)


def on_counts(case: Case) -> Array:
    """Milliseconds by ridge regression on the numbers of operations of each kind."""
    return _best([places(case.table.ops)[:, -_kinds(case) :]], case.latency_ms[case.train], np.ones(case.size), case)


def on_places(case: Case) -> Array:
    """Milliseconds by ridge regression on one-hot operations of each place."""
    return _best([places(case.table.ops)[:, : -_kinds(case)]], case.latency_ms[case.train], np.ones(case.size), case)


def additive(case: Case) -> Array:
    """Milliseconds by this project's additive model."""
    graphs = case.table.graphs
    model = ACCURACY_MODELS.get("additive")(unseen="ignore").fit(graphs.take(case.train), case.latency_ms[case.train])
    return model.predict(graphs.take(case.test))


def _kinds(case: Case) -> int:
    return int(case.table.ops.max()) + 1


def transferred(case: Case) -> Array:
    """Milliseconds as a sum over operations and over the sources' milliseconds, which are known for all networks."""
    return _relative(_with(case, case.table.latency_ms[:, case.sources]), case)


def transferred_own(case: Case) -> Array:
    """Do as :func:`transferred` where each source too is known for few networks of its own and predicted from
    them."""
    return _relative(_with(case, predicted_sources(case.table, case.draw)[:, case.sources]), case)


def transferred_logs(case: Case) -> Array:
    """The logarithm as a sum over operations and over the sources' logarithms, known for all networks."""
    candidates = _with(case, np.log(case.table.latency_ms[:, case.sources]))
    known = np.log(case.latency_ms[case.train])
    return np.exp(_best(candidates, known, np.ones(case.size), case))


@functools.cache
def predicted_sources(table: LatencyTable, draw: int) -> Array:
    """``(G, D)`` milliseconds on every device, each from :data:`OWN` networks drawn for it (at most half of all)."""
    features, size = places(table.ops), min(OWN, len(table.ops) // 2)
    columns = []
    for index, known in enumerate(table.latency_ms.T):
        rows = np.random.default_rng([draw, 23, index]).permutation(len(known))[:size]
        columns.append(ridge(features[rows], known[rows], known[rows] ** -2.0, features)[1])
    return np.stack(columns, 1)


def _with(case: Case, sources: Array) -> list[Array]:
    scaled = (sources - sources.mean(0)) / np.maximum(sources.std(0), 1e-9)
    return [np.concatenate([places(case.table.ops), share * scaled], 1) for share in SHARES]


def _relative(candidates: list[Array], case: Case) -> Array:
    known = case.latency_ms[case.train]
    predicted: Array = np.maximum(_best(candidates, known, known**-2.0, case), known.min() / 2)
    return predicted


def _best(candidates: list[Array], known: Array, weights: Array, case: Case) -> Array:
    fits = [ridge(x[case.train], known, weights, x[case.test]) for x in candidates]
    return min(fits, key=lambda pair: pair[0])[1]
