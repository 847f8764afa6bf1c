"""Latency of the architectures of one search space: measurements, drift, and models that read genes."""

from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.collect import collect, planned_architectures, reference_architecture
from nas_core.latency.by_genes.data import LatencyData
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_genes.drift import Drift, estimate_drift
from nas_core.latency.by_genes.fit import Fit, fit, judge
from nas_core.latency.by_genes.hat_tables import list_hat_tables, read_hat_table
from nas_core.latency.by_genes.load import load_latency_data
from nas_core.latency.by_genes.metrics import Quality
from nas_core.latency.by_genes.mlp import HATConfig, HATModel, MLPConfig, MLPModel
from nas_core.latency.by_genes.ridge import LinearModel

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
