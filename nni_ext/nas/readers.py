"""Graph readers by the class of the model space, and predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import ConfigError, SpaceError
from nas_core.graph import Graph
from nas_core.latency.by_graph.nn_former import check_unpriced
from nas_core.models import kind_of
from nas_core.predictor import AccuracyModel, load_accuracy_model
from nas_core.space.files import space_from_dict
from nni_ext.compat import nni_module
from nni_ext.graphs import (
    Sample,
    architecture_of,
    nasbench101_sample,
    nasbench201_sample,
    nasbench201_unpruned_sample,
)

Read = Callable[[Sample], Graph]
"""Function from a sample to its graph"""


def _architectures(space: Mapping[str, Any]) -> dict[str, Read]:
    search_space = space_from_dict(space)
    kind = kind_of(search_space)
    return {kind.name: lambda sample: kind.graph(architecture_of(search_space, sample))}


READERS: dict[str, Callable[..., dict[str, Read]]] = {
    "nni.nas.hub.pytorch.nasbench101.NasBench101": lambda **_: {"nasbench101": nasbench101_sample},
    "nni.nas.hub.pytorch.nasbench201.NasBench201": lambda **_: {
        "nasbench201": nasbench201_sample,
        "nasbench201_unpruned": nasbench201_unpruned_sample,
    },
    "nni_ext.nas.spaces.ArchitectureSpace": _architectures,
}
"""Qualified class name of a model space -> function from the space's arguments to its readers by name, default first"""


def reader_for(space: Any, name: str | None = None) -> Read:
    """Return the reader of a model space or model, also as in a strategy or engine.

    Args:
        name: reader of the predictor's training; default: the first of the space.

    Raises:
        SpaceError: the class is not in :data:`READERS`.
    """
    nas = nni_module("nni.nas.space", "reading model spaces of NNI")
    if isinstance(space, nas.RawFormatModelSpace):
        space = space.model_space
    elif isinstance(space, nas.SimplifiedModelSpace):
        space = space.model  # class and arguments of the model space
    kind = getattr(space, "trace_symbol", type(space))
    for base in getattr(kind, "__mro__", ()):
        if readers_of := READERS.get(f"{base.__module__}.{base.__qualname__}"):
            readers = readers_of(**space.trace_kwargs)
            chosen = next(iter(readers)) if name is None else name
            if chosen not in readers:
                raise ConfigError(
                    f"the reader is {chosen!r}, of the predictor or as given; models of {base.__name__} are read by"
                    f" {' or '.join(readers)}: take another predictor, or name one of these with reader="
                )
            return readers[chosen]
    raise SpaceError(
        f"got a model space of class {getattr(kind, '__name__', kind)}; expected NasBench101 or NasBench201 of"
        " nni.nas.hub.pytorch or one of nni_ext.as_model_space; for another give read=, a function from a sample to a"
        " nas_core Graph"
    )


def reader_name(predictor: AccuracyModel, given: str | None) -> str | None:
    """Return the given reader, else that of the predictor's training."""
    trained = predictor.info.get("reader")
    return given if given is not None or not isinstance(trained, str) else trained


def open_predictor(predictor: AccuracyModel | str | Path) -> AccuracyModel:
    """Return a fitted predictor, or read it from its file."""
    if isinstance(predictor, str | Path):
        return check_unpriced(load_accuracy_model(predictor), predictor)
    return predictor
