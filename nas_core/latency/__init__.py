"""Measurement of latency and memory, and models that predict latency."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.latency.by_genes.base import GeneLatencyModel
    from nas_core.latency.by_graph.base import GraphLatencyModel
    from nas_core.latency.protocol import Measurement, TimingConfig, measure
    from nas_core.latency.registry import LATENCY_MODELS, load_latency_model

__all__ = [
    "LATENCY_MODELS",
    "GeneLatencyModel",
    "GraphLatencyModel",
    "Measurement",
    "TimingConfig",
    "load_latency_model",
    "measure",
]

__getattr__, __dir__ = lazy_names(__name__)
