"""Measured latency and memory of architectures, and latency models by genes and by graph."""

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.memory import MeasuredMemory, measure_memory
from nas_core.latency.model import LatencyModel
from nas_core.latency.protocol import Measurement, TimingConfig, measure
from nas_core.latency.registry import (
    LATENCY_MODELS,
    described_latency_models,
    latency_model,
    list_latency_models,
    load_latency_model,
    parsed_model_settings,
)
from nas_core.models.workload import Workload

__all__ = [
    "LATENCY_MODELS",
    "GeneLatencyModel",
    "GraphLatencyModel",
    "LatencyModel",
    "MeasuredMemory",
    "Measurement",
    "TimingConfig",
    "Workload",
    "described_latency_models",
    "latency_model",
    "list_latency_models",
    "load_latency_model",
    "measure",
    "measure_memory",
    "parsed_model_settings",
]
