"""Latencies that others published of their networks, as a data set with graphs that are made here."""

from nas_core.latency.by_graph.published.collect import (
    NetworkSource,
    PublishedConfig,
    collect_published,
    network_source,
)
from nas_core.latency.by_graph.published.export import (
    ABSENT_FAMILY,
    NamedNetwork,
    exported_without_weights,
    exporting,
    of_batch,
    without_storage,
)
from nas_core.latency.by_graph.published.table import PublishedNetwork, PublishedTable, read_published

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
