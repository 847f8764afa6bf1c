"""Estimate of slow changes of machine speed in a latency table without a reference workload.

In tables such as HAT's, the machine is 10 to 50 % slower for hundreds of rows. Model and drift factor are estimated in
alternation. The drift factor of a row is the running median of measured / predicted latency over its neighbours in the
order of measurement. The model is fitted to latencies divided by the drift factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.model import Floats

_WINDOWS = (9, 15, 25)
_ROUNDS = 4  # number of alternations; after three the error changes by less than 0.1 %


@dataclass(frozen=True)
class Drift:
    """Latency of the machine over time, relative to its median; a factor of 1.2 is 20 % slower."""

    order: Floats
    """``(n,)`` ascending positions in the order of measurement."""
    factor: Floats
    """``(n,)`` drift factors with median 1."""

    def at(self, order: NDArray[Any]) -> Floats:
        return np.asarray(np.interp(order, self.order, self.factor), np.float64)


def running_median(values: Floats, window: int, leave_out: bool = False) -> Floats:
    """Return the running median over the ``window`` nearest values, with or without the value itself."""
    window = min(window, len(values) - leave_out)
    size = window + leave_out
    starts = np.clip(np.arange(len(values)) - size // 2, 0, len(values) - size)
    around = values[starts[:, None] + np.arange(size)]
    if leave_out:
        position = np.arange(len(values)) - starts
        around = around[np.arange(size) != position[:, None]].reshape(len(values), window)
    return np.asarray(np.median(around, axis=1))


def autocorrelation(ratio: Floats) -> float:
    """Return the lag-1 autocorrelation of the logarithm of measured / predicted latency; about 0 without drift."""
    residual = np.log(ratio)
    residual = residual - residual.mean()
    power = float(residual @ residual)
    return float(residual[:-1] @ residual[1:]) / power if power > 0 else 0.0


def estimate_drift(
    make: Callable[[], GeneLatencyModel], inputs: NDArray[Any], latency_ms: Floats, order: NDArray[Any]
) -> Drift:
    """Estimate the drift factor of each row. The window of the running median has the lowest leave-one-out error.

    Args:
        make: function that returns a new model.
        order: ``(n,)`` position of each row in the order of measurement.
    """
    ascending = np.argsort(order, kind="stable")
    inputs, latency_ms, order = inputs[ascending], latency_ms[ascending], np.asarray(order, np.float64)[ascending]
    candidates: list[tuple[float, Drift]] = []
    for window in _WINDOWS:
        factor = np.ones(len(latency_ms))
        for _ in range(_ROUNDS):
            model = make().fit(inputs, latency_ms / factor)
            ratio = latency_ms / model.predict_inputs(inputs)
            factor = running_median(ratio, window)
            factor = factor / np.median(factor)
        error = float(np.mean(np.abs(ratio / running_median(ratio, window, leave_out=True) - 1)))
        candidates.append((error, Drift(order, factor)))
    return min(candidates, key=lambda candidate: candidate[0])[1]
