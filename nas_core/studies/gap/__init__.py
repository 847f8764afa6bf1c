"""How far the quality that a supernet tells of its architectures is from that of the same networks, trained alone."""

from nas_core.studies.gap.agreement import Agreement, agreement
from nas_core.studies.gap.runs import StandaloneRun, read_runs, train_standalone

__all__ = ["Agreement", "StandaloneRun", "agreement", "read_runs", "train_standalone"]
