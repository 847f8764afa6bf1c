"""Fit and held-out evaluation of a latency model of one search space."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from nas_core.errors import ConfigError, DataError, SpaceError
from nas_core.latency.by_genes.base import MIN_RECORDS, GeneLatencyModel
from nas_core.latency.by_genes.dataset import LatencyData
from nas_core.latency.model import Floats
from nas_core.predictor.metrics import kendall_tau, mape
from nas_core.space.slots import ABSENT

_MIN_HELD_OUT = 3
INTERVAL = 0.9  # nominal coverage of prediction intervals
_SIGNIFICANCE = 0.05
_FEW_ROWS = 20  # number of held-out measurements below which the metrics are uncertain

LEGEND = """\
rows        held-out measurements, which the model was not fitted to
MAPE %      mean absolute percentage error; 1 to 5 on an idle machine
R2, tau     coefficient of determination, and Kendall's tau; 1 is perfect
coverage %  measurements inside the 90 % prediction interval; about 90 is expected, far less: the interval is too narrow
options %   options of the space that occur in the training measurements; 100 is expected, others are guessed"""

MakeModel = Callable[[], GeneLatencyModel]


@dataclass(frozen=True)
class Quality:
    """Metrics of a model on ``count`` measurements; NaN where undefined."""

    count: int
    mape_percent: float
    r2: float
    """Coefficient of determination."""
    kendall_tau: float
    coverage_percent: float
    """Coverage of the model's 90 % prediction interval, in percent."""
    options_percent: float = math.nan
    """Percentage of the options of the search space that occur in the training measurements."""

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON, with None instead of NaN."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def fit(data: LatencyData, make: MakeModel, holdout: float = 0.2, seed: int = 0) -> tuple[GeneLatencyModel, Quality]:
    """Fit a model to all rows of ``data``; also return its metrics on held-out rows, fitted to the other rows.

    Args:
        make: function that returns a new model for ``data.space`` and ``data.source``.
        holdout: fraction of the rows that is held out.
    """
    train, test = random_split(len(data), holdout, seed)
    train_model = make().fit(data.inputs[train], data.latency_ms[train])
    options_percent = math.nan
    if data.source == "rows":
        option_count = sum(len(set(column.tolist()) - {ABSENT}) for column in data.inputs[train].T)
        options_percent = 100 * option_count / int(data.space.slots.sizes.sum())
    predicted = train_model.predict_inputs(data.inputs[test])
    metrics = quality(predicted, data.latency_ms[test], train_model.interval, options_percent)
    model = make().fit(data.inputs, data.latency_ms)
    model.info = {**data.info, "measurements": len(data), "metrics": metrics.to_dict()}
    return model, metrics


def evaluate(model: GeneLatencyModel, data: LatencyData) -> Quality:
    """Evaluate a model on other measurements of its search space."""
    if data.space != model.space:
        raise SpaceError(
            f"the measurements are of space {data.space.name!r}, the model predicts for {model.space.name!r};"
            " give measurements of that space"
        )
    if data.source != model.source and data.source != "rows":
        raise DataError(
            "the latency model was fitted to the genes of each layer, but the given table has only averages over"
            " layers; give measurements of 'nas-ext latency collect', or a model that was fitted to such a table"
        )
    predict = model.predict_inputs if data.source == model.source else model.predict_rows
    return quality(predict(data.inputs), data.latency_ms, model.interval)


def random_split(count: int, holdout: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending indices of training and held-out rows."""
    if not 0 < holdout < 1:
        raise ConfigError(f"holdout is {holdout}; expected a fraction between 0 and 1, such as 0.2")
    held_out = max(_MIN_HELD_OUT, round(holdout * count))
    if count - held_out < MIN_RECORDS:
        raise DataError(
            f"got {count} measurements, of which {held_out} are held out; the fit needs at least {MIN_RECORDS}:"
            " measure more, or hold out fewer"
        )
    shuffled = np.random.default_rng(seed).permutation(count)
    return np.sort(shuffled[held_out:]), np.sort(shuffled[:held_out])


def quality(
    predicted_ms: Floats, measured_ms: Floats, interval: tuple[float, float], options_percent: float = math.nan
) -> Quality:
    """Return the metrics of predictions.

    Args:
        interval: bounds of the prediction interval of measured / predicted latency.
        options_percent: copied to the result.
    """
    ratio = measured_ms / predicted_ms
    covered = (ratio >= interval[0]) & (ratio <= interval[1])
    variance = float(np.sum((measured_ms - measured_ms.mean()) ** 2))
    return Quality(
        len(measured_ms),
        mape(predicted_ms, measured_ms),
        1 - float(np.sum((predicted_ms - measured_ms) ** 2)) / variance if variance > 0 else math.nan,
        kendall_tau(predicted_ms, measured_ms) if np.ptp(predicted_ms) and np.ptp(measured_ms) else math.nan,
        float(covered.mean() * 100),
        options_percent,
    )


def quality_warnings(quality: Quality, fitted: bool = True) -> list[str]:
    """Return warnings with advice about low coverage, few held-out rows and options without measurements.

    Args:
        fitted: True if the metrics are of held-out rows of a fit, False if of other measurements.
    """
    warnings = []
    advice = "measure more architectures ('nas-ext latency collect' with a larger --samples continues the same file)"
    if not fitted:
        advice = "fit the model to more architectures"
    covered = round(quality.coverage_percent / 100 * quality.count)
    if float(bdtr(covered, quality.count, INTERVAL)) < _SIGNIFICANCE:
        warnings.append(
            f"coverage is {quality.coverage_percent:.0f} %: {covered} of {quality.count} measurements are inside the"
            " model's 90 % prediction interval, so an architecture predicted below a limit may exceed it when measured;"
            f" {advice}, on a less busy machine or with --clock cpu"
        )
    if quality.count < _FEW_ROWS:
        hint = f"{advice}: 120 give 24 held-out ones" if fitted else "evaluate the model on more measurements"
        warnings.append(f"the metrics come from only {quality.count} measurements; {hint}")
    if quality.options_percent < 100:
        warnings.append(
            f"{100 - quality.options_percent:.1f} % of the space's options occur in no training measurement, so their"
            f" latency is guessed; {advice}"
        )
    return warnings
