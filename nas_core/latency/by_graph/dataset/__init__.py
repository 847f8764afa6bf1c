"""The user's own data set of whole networks' latencies: planned, measured, stored, read."""

from nas_core.latency.by_graph.dataset.again import measured_again, second_measurements
from nas_core.latency.by_graph.dataset.collect import collect_networks
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.dataset.plan import PlannedNetwork, planned_networks
from nas_core.latency.by_graph.dataset.reading import read_dataset
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES
from nas_core.latency.by_graph.dataset.visited import NetworkSetConfig

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
