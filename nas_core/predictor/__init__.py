"""Predictors of accuracy from the graph of a network."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.predictor.base import ACCURACY_MODELS, AccuracyModel, load_accuracy_model
    from nas_core.predictor.estimator import NNFormerPredictor
    from nas_core.predictor.metrics import kendall_tau
    from nas_core.predictor.nn_former.config import NNFormerConfig
    from nas_core.predictor.nn_former.model import NNFormer
    from nas_core.predictor.readers import READERS, Reader, reader_for
    from nas_core.predictor.statistics.predictor import PriorPredictor, StatisticsPredictor

__all__ = [
    "ACCURACY_MODELS",
    "READERS",
    "AccuracyModel",
    "NNFormer",
    "NNFormerConfig",
    "NNFormerPredictor",
    "PriorPredictor",
    "Reader",
    "StatisticsPredictor",
    "kendall_tau",
    "load_accuracy_model",
    "reader_for",
]

__getattr__, __dir__ = lazy_names(__name__)
