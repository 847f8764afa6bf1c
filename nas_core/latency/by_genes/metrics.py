"""How good a latency model is on measurements it has not seen."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from nas_core.predictor.metrics import kendall_tau, mape
from nas_core.space import SearchSpace
from nas_core.space.slots import ABSENT, Rows

INTERVAL = 0.9
"""Share of measurements that a model's interval is made to hold."""
BY_CHANCE = 0.05
"""A coverage that chance makes rarer than this, if the interval were right, is doubted."""
FEW = 20
"""Held-out measurements below which the figures themselves are rough."""

LEGEND = """\
rows        measurements that the model has not seen and is judged by
MAPE %      mean error of its predictions; a quiet machine gives 1 to 5
R2, tau     share of the variance explained, and Kendall's tau of the order; 1 is perfect
coverage %  measurements inside its 90 % interval; about 90 is expected, far less means that its spread is too narrow
options %   options of the space that occur in what it was fitted to; 100 is expected, others are guessed"""

Floats = NDArray[np.float64]


def r2(predicted_ms: Floats, measured_ms: Floats) -> float:
    """Share of the measurements' variance that is explained; NaN if they do not vary."""
    variance = float(np.sum((measured_ms - measured_ms.mean()) ** 2))
    return 1 - float(np.sum((predicted_ms - measured_ms) ** 2)) / variance if variance > 0 else math.nan


def option_coverage_percent(space: SearchSpace, rows: Rows) -> float:
    """Count how many percent of all options of all genes and layers occur in the rows."""
    seen = sum(len(set(column.tolist()) - {ABSENT}) for column in rows.T)
    return 100 * seen / int(space.slots.sizes.sum())


@dataclass(frozen=True)
class Quality:
    """A model against ``count`` measurements; NaN where a number does not exist."""

    count: int
    mape_percent: float
    r2: float
    kendall_tau: float
    coverage_percent: float
    """Share of the measurements inside the model's 90 % interval; far below 90 means its interval cannot be trusted."""
    options_percent: float = math.nan
    """Share of the space's options that occur in the measurements the model was fitted to."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what does not exist is None."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def quality(
    predicted_ms: Floats, measured_ms: Floats, interval: tuple[float, float], options_percent: float = math.nan
) -> Quality:
    """All numbers at once; ``interval`` holds the lower and upper bound of measured / predicted."""
    ratio = measured_ms / predicted_ms
    inside = (ratio >= interval[0]) & (ratio <= interval[1])
    return Quality(
        len(measured_ms),
        mape(predicted_ms, measured_ms),
        r2(predicted_ms, measured_ms),
        kendall_tau(predicted_ms, measured_ms) if np.ptp(predicted_ms) and np.ptp(measured_ms) else math.nan,
        float(inside.mean() * 100),
        options_percent,
    )


def doubts(quality: Quality, fitted: bool = True) -> list[str]:
    """What is to be doubted about a model, each with what to do; empty for a good one.

    Args:
        quality: of the model.
        fitted: by a part of the measurements held out of a fit; otherwise by measurements of their own.
    """
    found = []
    more = "measure more architectures ('nas-ext latency collect' with a larger --samples goes on with the same file)"
    if not fitted:
        more = "fit the model to more architectures"
    inside = round(quality.coverage_percent / 100 * quality.count)
    if float(bdtr(inside, quality.count, INTERVAL)) < BY_CHANCE:
        found.append(
            f"coverage is {quality.coverage_percent:.0f} %, {inside} of {quality.count} measurements inside the model's"
            f" 90 % interval, where about 90 % are expected: networks predicted within a limit may be measured above"
            f" it; {more}, on a quieter machine or with --clock cpu"
        )
    if quality.count < FEW:
        enough = f"{more}: 120 make 24 of them" if fitted else "judge it by more of them"
        found.append(f"these figures come from only {quality.count} measurements; {enough}")
    if quality.options_percent < 100:
        found.append(
            f"{100 - quality.options_percent:.1f} % of the space's options occur in no measurement of the fit and are"
            f" guessed; {more}"
        )
    return found


def table(rows: dict[str, Quality]) -> str:
    """A text table with one line for each name."""
    width = max(10, *(len(name) for name in rows))
    lines = [f"{'':{width}} {'rows':>6} {'MAPE %':>8} {'R2':>8} {'tau':>8} {'coverage %':>11} {'options %':>10}"]
    for name, q in rows.items():
        lines.append(
            f"{name:{width}} {q.count:6d} {q.mape_percent:8.2f} {_text(q.r2, 4):>8} {_text(q.kendall_tau, 4):>8}"
            f" {q.coverage_percent:11.1f} {_text(q.options_percent, 1):>10}"
        )
    return "\n".join(lines)


def _text(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"
