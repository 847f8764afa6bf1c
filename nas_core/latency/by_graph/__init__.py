"""Latency of whole networks from their graphs: baselines and NN-Former behind one interface."""

from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.ensemble import EnsembleModel
from nas_core.latency.by_graph.graphsage import GraphSageModel
from nas_core.latency.by_graph.kernel_sum import KernelSumConfig, KernelSumModel
from nas_core.latency.by_graph.nn_former import NNFormerModel, NNFormerReleasedModel
from nas_core.latency.by_graph.nnlqp import read_nnlqp, read_nnlqp_table
from nas_core.latency.by_graph.predict import predict_module_latency, predict_networks
from nas_core.latency.by_graph.price_list import CountsModel, FlopsModel
from nas_core.latency.by_graph.shipped import shipped_for, shipped_model

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
