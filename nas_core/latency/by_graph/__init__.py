"""Latency models of any network, given as a graph."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.latency.by_graph.adaptation import adapted_model
    from nas_core.latency.by_graph.predict import predict_module_latency, predict_networks, shipped_model

__all__ = [
    "adapted_model",
    "predict_module_latency",
    "predict_networks",
    "shipped_model",
]

__getattr__, __dir__ = lazy_names(__name__)
