"""Latency of whole networks from their graphs: baselines and NN-Former behind one interface."""

from nas_core.predictor.networks.base import NetworkLatencyModel
from nas_core.predictor.networks.ensemble import EnsembleModel
from nas_core.predictor.networks.graphsage import GraphSageModel, GraphSagePricedModel
from nas_core.predictor.networks.linear import CountsModel, FlopsAccessModel, FlopsModel
from nas_core.predictor.networks.nn_former import (
    NNFormerGlobalModel,
    NNFormerModel,
    NNFormerReleasedModel,
    NNFormerUnpricedModel,
)
from nas_core.predictor.networks.registry import (
    list_network_models,
    load_network_model,
    network_model_class,
    parsed_model_settings,
    register_network_model,
)
from nas_core.predictor.networks.trees import TreesModel

__all__ = [
    "CountsModel",
    "EnsembleModel",
    "FlopsAccessModel",
    "FlopsModel",
    "GraphSageModel",
    "GraphSagePricedModel",
    "NNFormerGlobalModel",
    "NNFormerModel",
    "NNFormerReleasedModel",
    "NNFormerUnpricedModel",
    "NetworkLatencyModel",
    "TreesModel",
    "list_network_models",
    "load_network_model",
    "network_model_class",
    "parsed_model_settings",
    "register_network_model",
]
