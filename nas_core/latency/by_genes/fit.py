"""Fit a model and say how good it is on measurements it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, SpaceError, unknown_choice
from nas_core.latency.by_genes.base import LEAST_RECORDS, GeneLatencyModel
from nas_core.latency.by_genes.data import LatencyData
from nas_core.latency.by_genes.drift import Drift, autocorrelation, estimate_drift
from nas_core.latency.by_genes.metrics import Quality, option_coverage_percent, quality
from nas_core.latency.by_genes.ridge import LinearModel

DRIFT_MODES = ("auto", "on", "off")
"""Whether a drift factor is estimated: ``auto`` does if no reference was measured and neighbouring residuals agree."""
_DRIFTING = 0.3
"""Autocorrelation of residuals from which ``auto`` takes a table to drift."""
_LEAST_HELD_OUT = 3

MakeModel = Callable[[], GeneLatencyModel]


@dataclass(frozen=True)
class Fit:
    """A fitted model and its quality."""

    model: GeneLatencyModel
    """Fitted to all rows; ``held_out`` describes its twin that was fitted without the held-out ones."""
    held_out: Quality
    """On held-out rows as they were measured."""
    without_drift: Quality | None
    """On held-out rows with the factor, estimated from training rows and interpolated, divided out; None without
    drift."""
    drift: Drift | None
    """The drift that was divided out of all rows."""

    def tables(self) -> dict[str, Quality]:
        rows = {"held out": self.held_out}
        return rows if self.without_drift is None else {**rows, "held out, drift divided out": self.without_drift}


def fit(data: LatencyData, make: MakeModel, holdout: float = 0.2, seed: int = 0, drift: str = "auto") -> Fit:
    """Fit to a random part of ``data``, judge on the rest, then fit to everything.

    Args:
        make: gives a fresh model for ``data.space`` and ``data.source``.
        holdout: share of the rows that is held out. seed: of the split.
        drift: one of :data:`DRIFT_MODES`.

    Raises:
        DataError: too few measurements, or values that are not finite and positive.
        ConfigError: a share outside (0, 1). UnknownChoiceError: another word for ``drift``.
    """
    if drift not in DRIFT_MODES:
        raise unknown_choice("drift mode", drift, DRIFT_MODES)
    train, test = random_split(len(data), holdout, seed)
    twin, factor = _fit(data.take(train), make, drift)
    held_out = data.take(test)
    options = option_coverage_percent(data.space, data.inputs[train]) if data.source == "rows" else float("nan")
    predicted = twin.predict_inputs(held_out.inputs)
    raw = quality(predicted, held_out.latency_ms, twin.interval, options)
    clean = None
    if factor is not None:
        clean = quality(predicted, held_out.latency_ms / factor.at(held_out.order), twin.interval, options)
    model, factor = _fit(data, make, "off" if factor is None else "on")
    model.info = {
        **data.info,
        "measurements": len(data),
        "learned": data.fingerprints(),
        "metrics": raw.to_dict(),
        "metrics_without_drift": None if clean is None else clean.to_dict(),
    }
    return Fit(model, raw, clean, factor)


def judge(model: GeneLatencyModel, data: LatencyData) -> Quality:
    """A model against other measurements of the same space.

    Raises:
        SpaceError: the measurements are of another space.
    """
    if data.space != model.space:
        raise SpaceError(
            f"the measurements are of space {data.space.name!r}, the model predicts for {model.space.name!r};"
            " give measurements of that space"
        )
    if data.source == model.source:
        predicted = model.predict_inputs(data.inputs)
    elif data.source == "rows":
        predicted = model.predict_rows(data.inputs)
    else:
        raise DataError(
            "the model needs the genes of each layer, the table holds only averages; fit a model to a table"
        )
    return quality(predicted, data.latency_ms, model.interval)


def random_split(count: int, holdout: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ascending indices of training and held-out rows."""
    if not 0 < holdout < 1:
        raise ConfigError(f"holdout is {holdout}, expected a share between 0 and 1, such as 0.2")
    held_out = max(_LEAST_HELD_OUT, round(holdout * count))
    if count - held_out < LEAST_RECORDS:
        raise DataError(
            f"got {count} measurements, of which {held_out} would be held out; expected at least"
            f" {LEAST_RECORDS} to fit to: collect more, or hold out fewer"
        )
    shuffled = np.random.default_rng(seed).permutation(count)
    return np.sort(shuffled[held_out:]), np.sort(shuffled[:held_out])


def _fit(data: LatencyData, make: MakeModel, drift: str) -> tuple[GeneLatencyModel, Drift | None]:
    if drift == "off" or (drift == "auto" and (data.referenced or not _drifts(data))):
        return make().fit(data.inputs, data.latency_ms), None
    factor = estimate_drift(_linear(data), data.inputs, data.latency_ms, data.order)
    return make().fit(data.inputs, data.latency_ms / factor.at(data.order)), factor


def _drifts(data: LatencyData) -> bool:
    model = _linear(data)().fit(data.inputs, data.latency_ms)
    ratio = data.latency_ms / model.predict_inputs(data.inputs)
    return autocorrelation(ratio[np.argsort(data.order, kind="stable")]) > _DRIFTING


def _linear(data: LatencyData) -> MakeModel:
    """Drift is estimated with the linear model whatever model is fitted: it takes a dozen fits."""
    return lambda: LinearModel(data.space, data.source)
