"""What networks reach when trained on their own, estimated from a supernet and a few that were trained."""

from nas_core.search.calibration.belonging import evaluation_settings, require_made_with
from nas_core.search.calibration.following import Following, expected_gain, next_to_train
from nas_core.search.calibration.inherited import inherited_metrics
from nas_core.search.calibration.model import Calibration, Quality, larger_is_better
from nas_core.search.calibration.records import TrainedNetworks, read_trained
from nas_core.search.calibration.saved import load_calibration, save_calibration
from nas_core.search.calibration.searched import calibrated_metrics, calibrated_name, objective_of

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
