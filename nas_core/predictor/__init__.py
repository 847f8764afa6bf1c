"""Predictors of accuracy or latency, fitted to graphs of architectures."""

from nas_core.predictor.acquisition import expected_improvement, log_expected_improvement
from nas_core.predictor.base import ACCURACY_MODELS, AccuracyModel, load_accuracy_model, parsed_accuracy_settings
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.metrics import accuracy_within, kendall_tau, mape
from nas_core.predictor.nn_former.batch import Batch, Topology
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.readers import READERS, Reader, reader_for, reader_names
from nas_core.predictor.recipes import Recipe, get_recipe, list_recipes
from nas_core.predictor.training import TrainConfig, Trainer

__all__ = [
    "ACCURACY_MODELS",
    "READERS",
    "AccuracyModel",
    "Batch",
    "NNFormer",
    "NNFormerConfig",
    "NNFormerPredictor",
    "Reader",
    "Recipe",
    "Topology",
    "TrainConfig",
    "Trainer",
    "accuracy_within",
    "expected_improvement",
    "get_recipe",
    "kendall_tau",
    "list_recipes",
    "load_accuracy_model",
    "log_expected_improvement",
    "mape",
    "parsed_accuracy_settings",
    "reader_for",
    "reader_names",
]
