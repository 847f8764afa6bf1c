"""Data sets of whole networks' latencies: planned, measured, stored, read."""

from nas_core.latency.by_graph.dataset.collect import (
    NetworkSetConfig,
    PlannedNetwork,
    collect_networks,
    measured_again,
    planned_networks,
)
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset, second_measurements
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES

__all__ = [
    "RUNTIMES",
    "NetworkSet",
    "NetworkSetConfig",
    "PlannedNetwork",
    "collect_networks",
    "measured_again",
    "planned_networks",
    "read_dataset",
    "second_measurements",
]
