"""How much further training subnets need, from inherited weights to the quality of the same networks trained alone."""

from nas_core.studies.close_gap.further import Curve, Schedule, train_further

__all__ = ["Curve", "Schedule", "train_further"]
