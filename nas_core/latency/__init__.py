"""What an architecture costs measured: timing protocol, data sets, drift, latency models."""

from nas_core.latency.collect import collect, planned_architectures, reference_architecture
from nas_core.latency.data import LatencyData, load_latency_data
from nas_core.latency.dataset import LatencyDataset
from nas_core.latency.drift import Drift, estimate_drift
from nas_core.latency.fit import Fit, fit, judge
from nas_core.latency.hat_tables import list_hat_tables, read_hat_table
from nas_core.latency.linear import LinearModel
from nas_core.latency.metrics import Quality
from nas_core.latency.mlp import MLPConfig, MLPModel
from nas_core.latency.models import LatencyModel, list_models, load_model, model_class, register_model
from nas_core.latency.networks import NetworkLatencies, last_of_each
from nas_core.latency.nnlqp import read_nnlqp, read_nnlqp_table
from nas_core.latency.protocol import Measurement, TimingConfig, Workload, measure
from nas_core.latency.translation import TranslationConfig, TranslationWorkload

__all__ = [
    "Drift",
    "Fit",
    "LatencyData",
    "LatencyDataset",
    "LatencyModel",
    "LinearModel",
    "MLPConfig",
    "MLPModel",
    "Measurement",
    "NetworkLatencies",
    "Quality",
    "TimingConfig",
    "TranslationConfig",
    "TranslationWorkload",
    "Workload",
    "collect",
    "estimate_drift",
    "fit",
    "judge",
    "last_of_each",
    "list_hat_tables",
    "list_models",
    "load_latency_data",
    "load_model",
    "measure",
    "model_class",
    "planned_architectures",
    "read_hat_table",
    "read_nnlqp",
    "read_nnlqp_table",
    "reference_architecture",
    "register_model",
]
