"""Accuracy models by name and from files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nas_core.predictor.artifact import read_artifact
from nas_core.predictor.base import AccuracyModel
from nas_core.registry import Registry
from nas_core.settings import parsed_settings

__all__ = ["ACCURACY_MODELS", "load_accuracy_model", "parsed_accuracy_settings"]

ACCURACY_MODELS: Registry[type[AccuracyModel]] = Registry(
    "accuracy model",
    "nas_ext.accuracy_models",
    {
        "nn-former": "nas_core.predictor.estimator:NNFormerPredictor",
        "statistics": "nas_core.predictor.statistics.predictor:StatisticsPredictor",
        "gaussian-process": "nas_core.predictor.statistics.predictor:GaussianProcessPredictor",
        "boosted-trees": "nas_core.predictor.statistics.predictor:BoostedTreesPredictor",
    },
    AccuracyModel,
    of_classes=True,
)
"""A new one is a file of its own and a line here; its class is an :class:`AccuracyModel`."""


def load_accuracy_model(path: str | Path, device: str = "cpu", unseen: str | None = None) -> AccuracyModel:
    """Read what the ``save`` of any accuracy model wrote.

    Args:
        device: where to compute.
        unseen: what to do with operations that no training graph has; default: as it was saved.

    Raises:
        DataError: the file is missing, truncated, altered, of a newer version, or something else.
        ConfigError, UnknownChoiceError: an argument that cannot be.
    """
    AccuracyModel.check_loading(device, unseen)
    header, tensors = read_artifact(path, ACCURACY_MODELS.names())
    return ACCURACY_MODELS.get(header["kind"]).opened(path, header, tensors, device, unseen)


def parsed_accuracy_settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """``["epochs=20"]`` as settings of that model, each of the type of its field.

    Raises:
        ConfigError, UnknownChoiceError: no such model or setting, no ``NAME=VALUE``, or a value of another type.
    """
    return parsed_settings(texts, ACCURACY_MODELS.get(name).setting_types(), f"accuracy model {name!r}")
