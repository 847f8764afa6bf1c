"""The user's own data set of whole networks' latencies: planned, measured, stored, read."""

from nas_core.latency.network_set.again import measured_again
from nas_core.latency.network_set.collect import collect_networks
from nas_core.latency.network_set.folder import NetworkSet
from nas_core.latency.network_set.plan import PlannedNetwork, planned_networks
from nas_core.latency.network_set.reading import read_dataset
from nas_core.latency.network_set.runtimes import RUNTIMES
from nas_core.latency.network_set.visited import NetworkSetConfig

__all__ = [
    "RUNTIMES",
    "NetworkSet",
    "NetworkSetConfig",
    "PlannedNetwork",
    "collect_networks",
    "measured_again",
    "planned_networks",
    "read_dataset",
]
