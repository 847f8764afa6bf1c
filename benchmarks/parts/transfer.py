"""Linear predictors of latency on a held-out device, from a few of its measurements and from other devices."""

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
SCALES = (0.3, 1.0, 3.0, 10.0)
"""Scales of the devices' features, relative to those of operations."""
SOURCE_SIZE = 900
"""Number of measured networks on each source device, unless all are measured."""
_BATCH = re.compile(r"_(1|32|64|256)$")


@dataclass(frozen=True, eq=False)
class Case:
    """Held-out device with ``size`` training networks; the others are the test set.

    The same chip at another batch size is not a source.
    """

    table: LatencyTable
    device: str
    size: int
    draw: int
    """Seed of the order of networks; the first ``size`` are the training set"""
    max_test: int | None = None
    """Largest number of test networks; None for all"""

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        return np.random.default_rng([self.draw, 22]).permutation(len(self.table.ops))

    @property
    def train(self) -> NDArray[np.int64]:
        return self._order[: self.size]

    @property
    def test(self) -> NDArray[np.int64]:
        return self._order[self.size :][: self.max_test]

    @property
    def latency_ms(self) -> Array:
        return self.table.latency_ms[:, self.table.devices.index(self.device)]

    @property
    def sources(self) -> list[int]:
        """Column indices of devices with other chips."""
        return [i for i, name in enumerate(self.table.devices) if chip(name) != chip(self.device)]


def chip(device: str) -> str:
    """Return a device's name without its batch size."""
    return _BATCH.sub("", device)


def operation_features(ops: NDArray[np.int64]) -> Array:
    """Return one-hot operations of the L layers, and counts of the K operations ``(G, L K + K)``."""
    one_hot = np.eye(int(ops.max()) + 1)[ops]
    return np.concatenate([one_hot.reshape(len(ops), -1), one_hot.sum(1)], 1)


def ridge(x: Array, y: Array, weights: Array, x_test: Array) -> tuple[float, Array]:
    """Fit a weighted ridge regression with an intercept; the penalty is selected by leave-one-out error.

    Returns:
        Weighted mean square of these errors, and predictions ``(B,)`` for ``x_test`` ``(B, F)``.
    """
    share = weights / weights.sum()
    sqrt_share, mean_x, mean_y = np.sqrt(share), share @ x, share @ y
    left, singular_values, right = np.linalg.svd((x - mean_x) * sqrt_share[:, None], full_matrices=False)
    centred_y = (y - mean_y) * sqrt_share
    projected = left.T @ centred_y
    best, shrinkage = np.inf, np.ones_like(singular_values)
    for penalty in PENALTIES:
        factors = singular_values**2 / (singular_values**2 + penalty)
        residual_leverage = np.maximum(1 - share - left**2 @ factors, 1e-9)
        error = float(np.mean(((centred_y - left @ (factors * projected)) / residual_leverage) ** 2) * weights.sum())
        if error < best:
            best, shrinkage = error, factors
    slopes = right.T @ (shrinkage * projected / np.maximum(singular_values, 1e-12))
    return best, (x_test - mean_x) @ slopes + mean_y


def from_scratch(case: Case) -> Array:
    """Predict milliseconds as a sum over operations, by least squares of relative errors."""
    return _fit_relative([operation_features(case.table.ops)], case)


def ridge_on_counts(case: Case) -> Array:
    return _best_fit(
        [operation_features(case.table.ops)[:, -_kinds(case) :]], case.latency_ms[case.train], np.ones(case.size), case
    )


def ridge_on_positions(case: Case) -> Array:
    return _best_fit(
        [operation_features(case.table.ops)[:, : -_kinds(case)]], case.latency_ms[case.train], np.ones(case.size), case
    )


def additive(case: Case) -> Array:
    graphs = case.table.graphs
    model = ACCURACY_MODELS.get("additive")(unseen="ignore").fit(graphs.take(case.train), case.latency_ms[case.train])
    return model.predict(graphs.take(case.test))


def _kinds(case: Case) -> int:
    return int(case.table.ops.max()) + 1


def transfer(case: Case) -> Array:
    """Predict milliseconds as a sum over operations and the sources' milliseconds, known for all networks."""
    return _fit_relative(_with_sources(case, case.table.latency_ms[:, case.sources]), case)


def transfer_predicted(case: Case) -> Array:
    """Predict as :func:`transfer`, with the sources predicted from a few networks."""
    return _fit_relative(_with_sources(case, predicted_sources(case.table, case.draw)[:, case.sources]), case)


def transfer_logs(case: Case) -> Array:
    """Predict as :func:`transfer`, in logarithms."""
    candidates = _with_sources(case, np.log(case.table.latency_ms[:, case.sources]))
    log_ms = np.log(case.latency_ms[case.train])
    return np.exp(_best_fit(candidates, log_ms, np.ones(case.size), case))


@functools.cache
def predicted_sources(table: LatencyTable, draw: int) -> Array:
    """Predict milliseconds ``(G, D)`` on every device from :data:`SOURCE_SIZE` networks each (at most half of all)."""
    features, size = operation_features(table.ops), min(SOURCE_SIZE, len(table.ops) // 2)
    columns = []
    for index, source_ms in enumerate(table.latency_ms.T):
        rows = np.random.default_rng([draw, 23, index]).permutation(len(source_ms))[:size]
        columns.append(ridge(features[rows], source_ms[rows], source_ms[rows] ** -2.0, features)[1])
    return np.stack(columns, 1)


def _with_sources(case: Case, sources: Array) -> list[Array]:
    scaled = (sources - sources.mean(0)) / np.maximum(sources.std(0), 1e-9)
    return [np.concatenate([operation_features(case.table.ops), scale * scaled], 1) for scale in SCALES]


def _fit_relative(candidates: list[Array], case: Case) -> Array:
    train_ms = case.latency_ms[case.train]
    predicted: Array = np.maximum(_best_fit(candidates, train_ms, train_ms**-2.0, case), train_ms.min() / 2)
    return predicted


def _best_fit(candidates: list[Array], targets: Array, weights: Array, case: Case) -> Array:
    fits = [ridge(x[case.train], targets, weights, x[case.test]) for x in candidates]
    return min(fits, key=lambda pair: pair[0])[1]
