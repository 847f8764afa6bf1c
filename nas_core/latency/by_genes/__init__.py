"""Latency of the architectures of one search space: measurements, drift, and models of genes."""

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.collect import collect, planned_architectures, reference_architecture
from nas_core.latency.by_genes.dataset import (
    LatencyData,
    LatencyDataset,
    list_hat_tables,
    load_latency_data,
    read_hat_table,
)
from nas_core.latency.by_genes.drift import Drift, estimate_drift
from nas_core.latency.by_genes.fit import Fit, Quality, fit, judge
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.latency.by_genes.mlp import HATConfig, HATModel, MLPConfig, MLPModel

__all__ = [
    "Drift",
    "Fit",
    "GeneLatencyModel",
    "HATConfig",
    "HATModel",
    "LatencyData",
    "LatencyDataset",
    "LinearModel",
    "MLPConfig",
    "MLPModel",
    "Quality",
    "collect",
    "estimate_drift",
    "fit",
    "judge",
    "list_hat_tables",
    "load_latency_data",
    "planned_architectures",
    "read_hat_table",
    "reference_architecture",
]
