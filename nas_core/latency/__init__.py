"""What an architecture costs measured: the timing protocol; ``by_genes`` and ``by_graph`` hold data sets and models."""

from nas_core.latency.protocol import Measurement, TimingConfig, Workload, measure

__all__ = ["Measurement", "TimingConfig", "Workload", "measure"]
