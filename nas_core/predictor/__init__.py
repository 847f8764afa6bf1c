"""What an architecture will score, learned from graphs."""

from nas_core.predictor.batch import Batch, Topology
from nas_core.predictor.config import NNFormerConfig
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.predictor.metrics import accuracy_within, kendall_tau, mape
from nas_core.predictor.model import NNFormer
from nas_core.predictor.recipes import Recipe, get_recipe, list_recipes
from nas_core.predictor.trainer import TrainConfig, Trainer

__all__ = [
    "Batch",
    "NNFormer",
    "NNFormerConfig",
    "NNFormerPredictor",
    "Recipe",
    "Topology",
    "TrainConfig",
    "Trainer",
    "accuracy_within",
    "get_recipe",
    "kendall_tau",
    "list_recipes",
    "mape",
]
