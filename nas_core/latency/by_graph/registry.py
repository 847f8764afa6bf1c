"""Latency models of whole networks by name, and from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from torch import Tensor

from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.latency.by_graph.base import GraphLatencyModel, about_of
from nas_core.predictor.artifact import OF_NETWORKS, read_artifact
from nas_core.predictor.estimator import KIND as PREDICTOR
from nas_core.predictor.settings import parsed_settings

__all__ = [
    "list_network_models",
    "load_network_model",
    "network_model_class",
    "parsed_model_settings",
    "register_network_model",
    "restored_network_model",
]

_MODELS: dict[str, type[GraphLatencyModel]] = {}
_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise."""


def register_network_model(cls: type[GraphLatencyModel]) -> type[GraphLatencyModel]:
    """Decorator: makes a model known under its ``kind``. The same class again changes nothing.

    Raises:
        ConfigError: another class holds the name.
    """
    known = _MODELS.get(cls.kind)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(
            f"latency model {cls.kind!r} of networks is {known.__module__}.{known.__qualname__}; {cls.__module__}."
            f"{cls.__qualname__} needs another name"
        )
    _MODELS[cls.kind] = cls
    return cls


def list_network_models() -> list[str]:
    return sorted(_MODELS)


def network_model_class(kind: str) -> type[GraphLatencyModel]:
    """Raises:
    UnknownChoiceError: no such model; the message lists them.
    """
    if kind not in _MODELS:
        raise unknown_choice("latency model of networks", kind, _MODELS)
    return _MODELS[kind]


def parsed_model_settings(kind: str, texts: Iterable[str]) -> dict[str, Any]:
    """``["epochs=20"]`` as settings of that kind of model, each of the type of its field.

    Raises:
        ConfigError, UnknownChoiceError: no ``NAME=VALUE``, a value of another type, or no such setting.
    """
    cls = network_model_class(kind)
    given = list(texts)
    known = get_type_hints(cls.config_class)
    strange = {text.partition("=")[0].strip() for text in given if "=" in text} - known.keys()
    if strange and cls.recipe is None:
        cls(**dict.fromkeys(strange))  # says what it has
    settings = parsed_settings(given, known)
    cls(**settings)
    return settings


def load_network_model(path: str | Path) -> GraphLatencyModel:
    """Read what :meth:`GraphLatencyModel.save` wrote, of any kind.

    Raises:
        DataError: the file is missing, truncated, altered, of a newer version, or something else.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; 'nas-ext latency train' makes a latency model of networks")
    header, tensors = read_artifact(path, (OF_NETWORKS, PREDICTOR))
    try:
        about = about_of(header)
    except DataError:
        raise DataError(
            f"{path} predicts no latency of whole networks; 'nas-ext latency train' makes such a model"
        ) from None
    if about["model"] not in _MODELS:
        raise DataError(f"{path} holds a model {about['model']!r}; this release has {', '.join(_MODELS)}")
    try:
        return restored_network_model(header, tensors)
    except (*_ALTERED, NasExtError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the latency model is damaged ({reason[:120]}); train it anew") from None


def restored_network_model(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> GraphLatencyModel:
    """Inverse of :meth:`GraphLatencyModel.contents`, of any kind.

    Raises:
        Exception: of many kinds, where something is missing or was altered.
    """
    about = about_of(header)
    return network_model_class(about["model"])(**about["settings"]).restore(header, tensors)
