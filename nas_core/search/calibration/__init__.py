"""Estimates of standalone quality from a supernet and a few trained networks."""

from nas_core.search.calibration.acquisition import Following, expected_gain, next_to_train
from nas_core.search.calibration.files import (
    TrainedNetworks,
    evaluation_settings,
    inherited_metrics,
    load_calibration,
    read_trained,
    require_made_with,
    save_calibration,
)
from nas_core.search.calibration.model import (
    Calibration,
    Quality,
    calibrated_metrics,
    calibrated_name,
    larger_is_better,
    objective_of,
)

__all__ = [
    "Calibration",
    "Following",
    "Quality",
    "TrainedNetworks",
    "calibrated_metrics",
    "calibrated_name",
    "evaluation_settings",
    "expected_gain",
    "inherited_metrics",
    "larger_is_better",
    "load_calibration",
    "next_to_train",
    "objective_of",
    "read_trained",
    "require_made_with",
    "save_calibration",
]
