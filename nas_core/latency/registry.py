"""Registry of latency models, and loading of their files."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, overload

from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.latency.by_genes.base import GeneLatencyModel, read_model_file
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.model import LatencyModel
from nas_core.options import parsed_settings
from nas_core.predictor.artifact import NETWORK_LATENCY, read_artifact
from nas_core.registry import Registry
from nas_core.space import SearchSpace

By = Literal["genes", "graph"]

LATENCY_MODELS: Registry[type[LatencyModel]] = Registry(
    "latency model",
    "nas_ext.latency_models",
    {
        "linear": "nas_core.latency.by_genes.linear:LinearModel",
        "counts": "nas_core.latency.by_graph.counts:CountsModel",
        "ensemble": "nas_core.latency.by_graph.ensemble:EnsembleModel",
        "graphsage": "nas_core.latency.by_graph.graphsage:GraphSageModel",
        "nn-former": "nas_core.latency.by_graph.nn_former:NNFormerModel",
    },
    LatencyModel,
    of_classes=True,
)
"""Classes of latency models by name: subclasses of :class:`GeneLatencyModel` and of :class:`GraphLatencyModel`."""

_COMMANDS = {"genes": "nas-ext latency fit", "graph": "nas-ext latency train"}
_ADVICE = {
    "genes": (
        "predicts architectures of one search space; give a model of any network, trained by 'nas-ext latency train'"
    ),
    "graph": (
        "predicts networks, not architectures of a search space; predict architectures with 'nas-ext latency collect"
        " --predicted-by {path}', fit a model to them with 'nas-ext latency fit', and give that model"
    ),
}


def list_latency_models(by: By | None = None) -> list[str]:
    """Return the names of the latency models with inputs ``genes`` or ``graph``; None: of all."""
    return [name for name, model in LATENCY_MODELS.items() if by in (None, model.by)]


def describe_latency_models(by: By) -> str:
    """Return the names and first docstring lines of the latency models with one type of inputs, for help texts."""
    first = {name: (inspect.getdoc(model) or name).splitlines()[0] for name, model in LATENCY_MODELS.items()}
    return "; ".join(f"{name}: {first[name].rstrip('.')}" for name in list_latency_models(by))


def latency_model(name: str, by: By | None = None) -> type[Any]:
    """Return the class of a latency model by name."""
    if name not in LATENCY_MODELS.names():
        raise unknown_choice("latency model", name, list_latency_models(by))
    model = LATENCY_MODELS.get(name)
    if by not in (None, model.by):
        raise ConfigError(
            f"latency model {name!r} is for {_COMMANDS[model.by]!r}; expected one of"
            f" {', '.join(list_latency_models(by))}"
        )
    return model


def parsed_model_settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """Parse ``["epochs=20"]`` into settings of a latency model; raise a ConfigError if one is unknown or invalid."""
    return parsed_settings(texts, latency_model(name).setting_types(), f"latency model {name!r}")


@overload
def load_latency_model(path: str | Path) -> LatencyModel: ...
@overload
def load_latency_model(path: str | Path, by: Literal["graph"]) -> GraphLatencyModel: ...
@overload
def load_latency_model(
    path: str | Path, by: Literal["genes"], space: SearchSpace | None = None
) -> GeneLatencyModel: ...
def load_latency_model(path: str | Path, by: By | None = None, space: SearchSpace | None = None) -> LatencyModel:
    """Load a latency model from its file.

    Args:
        by: required type of inputs, ``genes`` or ``graph``; None: any.
        space: required search space of a model with inputs ``genes``; None: any.

    Raises:
        DataError: the file is not such a latency model, or is damaged.
        SpaceError: the model was fitted for another search space.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"file not found: {path}; {_COMMANDS[by or 'genes']!r} creates a latency model")
    model: LatencyModel
    if path.suffix == ".json":
        header = read_model_file(path)
        model = latency_model(str(header.get("kind")), "genes").restored(header, path)
    else:
        model = _read_by_graph(path)
    if by not in (None, model.by):
        advice = _ADVICE[model.by].format(path=path)
        raise DataError(f"{path} holds latency model {model.name!r}, which {advice}")
    if space is not None and isinstance(model, GeneLatencyModel):
        model.check_space(space, path)
    return model


def _read_by_graph(path: Path) -> GraphLatencyModel:
    header, tensors = read_artifact(path, NETWORK_LATENCY)
    name = str(header.get("model"))
    if name not in LATENCY_MODELS.names():
        raise DataError(
            f"{path} holds unknown latency model {name!r}; expected {', '.join(list_latency_models('graph'))}"
        )
    try:
        model: GraphLatencyModel = latency_model(name, "graph").restored(header, tensors)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, NasExtError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the latency model is damaged ({reason[:120]}); train it again") from None
    return model
