"""Families of networks with random sizes, for data sets of latencies."""

from nas_core.latency.by_graph.families.family import Built, Family, Settings, image
from nas_core.latency.by_graph.families.registry import CORE, chosen_families, network_families

__all__ = ["CORE", "Built", "Family", "Settings", "chosen_families", "image", "network_families"]
