"""Latencies that others measured of their own networks and published: as a data set, with graphs made here."""

from nas_core.latency.by_graph.published.collect import PublishedConfig, collect_published
from nas_core.latency.by_graph.published.source import NetworkSource, network_source
from nas_core.latency.by_graph.published.table import PublishedNetwork, PublishedTable, read_published
from nas_core.latency.by_graph.published.weightless import exported_without_weights, of_batch, without_storage
from nas_core.latency.by_graph.published.worker import ABSENT_FAMILY, NamedNetwork, exporting

__all__ = [
    "ABSENT_FAMILY",
    "NamedNetwork",
    "NetworkSource",
    "PublishedConfig",
    "PublishedNetwork",
    "PublishedTable",
    "collect_published",
    "exported_without_weights",
    "exporting",
    "network_source",
    "of_batch",
    "read_published",
    "without_storage",
]
