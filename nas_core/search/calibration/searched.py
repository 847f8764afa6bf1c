"""A calibration as what a search minimises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nas_core.search.calibration.inherited import inherited_value
from nas_core.search.calibration.model import Calibration
from nas_core.space import Architecture


def calibrated_name(calibration: Calibration) -> str:
    """The name of the estimate among an evaluation's metrics, such as ``calibrated_test_bleu``."""
    return f"calibrated_{calibration.metric if calibration.fitted else calibration.inherited_metric}"


def objective_of(calibration: Calibration) -> str:
    """The name of what is minimised: that of the estimate, after a minus where larger ones are better."""
    larger = calibration.larger if calibration.fitted else calibration.inherited_larger
    return f"-{calibrated_name(calibration)}" if larger else calibrated_name(calibration)


def calibrated_metrics(
    calibration: Calibration, architecture: Architecture, found: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    """The estimate, its spread and what is minimised, by name; nothing where an inherited metric is no finite number.

    Args:
        found: metrics of the architecture with the weights of each supernet, as the calibration was fitted to.

    Raises:
        UnknownChoiceError: they lack the inherited metric. DataError: another number of supernets.
    """
    values = [[inherited_value(metrics, calibration.inherited_metric) for metrics in found]]
    if not all(map(math.isfinite, values[0])):
        return {}
    name, objective = calibrated_name(calibration), objective_of(calibration)
    if not calibration.fitted:
        estimate, more = float(calibration.predict([architecture], values)[0]), {}
    else:
        mean, spread = calibration.predict_with_spread([architecture], values)
        estimate, more = float(mean[0]), {f"{name}_spread": float(spread[0])}
    return {objective: -estimate if objective != name else estimate, name: estimate, **more}
