"""Latency models of whole networks by their graphs, data sets for them, and predictions."""

from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.counts import CountsModel, FlopsModel
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.ensemble import EnsembleModel
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.kernel_sum import KernelSumConfig, KernelSumModel
from nas_core.latency.by_graph.load import read_nnlqp, read_nnlqp_table
from nas_core.latency.by_graph.nn_former import NNFormerModel, NNFormerReleasedModel
from nas_core.latency.by_graph.predict import predict_module_latency, predict_networks, shipped_for, shipped_model

__all__ = [
    "CountsModel",
    "EnsembleModel",
    "FlopsModel",
    "GraphLatencyModel",
    "GraphSageModel",
    "KernelSumConfig",
    "KernelSumModel",
    "NNFormerModel",
    "NNFormerReleasedModel",
    "NetworkLatencies",
    "last_of_each",
    "predict_module_latency",
    "predict_networks",
    "read_nnlqp",
    "read_nnlqp_table",
    "shipped_for",
    "shipped_model",
]
