"""Latency models by name and from files, those that read genes and those that read graphs."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, overload

from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.by_genes.model_file import read_model_file
from nas_core.latency.by_graph.base import GraphLatencyModel, about_of
from nas_core.latency.model import LatencyModel
from nas_core.options import parsed_settings
from nas_core.predictor.artifact import OF_NETWORKS, read_artifact
from nas_core.predictor.estimator import NNFormerPredictor
from nas_core.registry import Registry
from nas_core.space import SearchSpace

By = Literal["genes", "graph"]

LATENCY_MODELS: Registry[type[LatencyModel]] = Registry(
    "latency model",
    "nas_ext.latency_models",
    {
        "linear": "nas_core.latency.by_genes.ridge:LinearModel",
        "mlp": "nas_core.latency.by_genes.mlp:MLPModel",
        "hat-mlp": "nas_core.latency.by_genes.mlp:HATModel",
        "counts": "nas_core.latency.by_graph.price_list:CountsModel",
        "ensemble": "nas_core.latency.by_graph.ensemble:EnsembleModel",
        "flops": "nas_core.latency.by_graph.price_list:FlopsModel",
        "graphsage": "nas_core.latency.by_graph.graphsage:GraphSageModel",
        "kernel-sum": "nas_core.latency.by_graph.kernel_sum:KernelSumModel",
        "nn-former": "nas_core.latency.by_graph.nn_former:NNFormerModel",
        "nn-former-released": "nas_core.latency.by_graph.nn_former:NNFormerReleasedModel",
    },
    LatencyModel,
    of_classes=True,
)
"""Those by genes first. A new one is a file of its own and a line here; a :class:`GeneLatencyModel` or a
:class:`GraphLatencyModel`."""

_MADE_BY = {"genes": "nas-ext latency fit", "graph": "nas-ext latency train"}
_BY_GENES = (".json", ".npz")
"""Endings of files by genes."""
_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise."""


def list_latency_models(by: By | None = None) -> list[str]:
    """Names of the models, of all or of those that read genes or graphs."""
    return [name for name, model in LATENCY_MODELS.items() if by in (None, model.by)]


def described_latency_models(by: By) -> str:
    """What help says of the models that read genes or graphs: each name with the first line of its documentation."""
    first = {name: (inspect.getdoc(model) or name).splitlines()[0] for name, model in LATENCY_MODELS.items()}
    return "; ".join(f"{name}: {first[name].rstrip('.')}" for name in list_latency_models(by))


@overload
def latency_model(name: str) -> type[LatencyModel]: ...
@overload
def latency_model(name: str, by: Literal["genes"]) -> type[GeneLatencyModel]: ...
@overload
def latency_model(name: str, by: Literal["graph"]) -> type[GraphLatencyModel]: ...
def latency_model(name: str, by: By | None = None) -> type[LatencyModel]:
    """The class of that name.

    Args:
        by: what it has to read; None: either.

    Raises:
        UnknownChoiceError: no such model; the message lists them. ConfigError: it reads the other.
    """
    if name not in LATENCY_MODELS.names():
        raise unknown_choice(f"latency model{_by(by)}", name, list_latency_models(by))
    model = LATENCY_MODELS.get(name)
    if by not in (None, model.by):
        raise ConfigError(
            f"latency model {name!r} is one{_by(model.by)}, of {_MADE_BY[model.by]!r}; expected one{_by(by)}:"
            f" {', '.join(list_latency_models(by))}"
        )
    return model


def parsed_model_settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """``["epochs=20"]`` as settings of that model, each of the type of its field.

    Raises:
        ConfigError, UnknownChoiceError: no ``NAME=VALUE``, a value of another type, or no such setting.
    """
    model, given = latency_model(name), list(texts)
    model.check_settings(text.partition("=")[0].strip() for text in given if "=" in text)
    return parsed_settings(given, model.setting_types(), f"latency model {name!r}")


@overload
def load_latency_model(path: str | Path) -> LatencyModel: ...
@overload
def load_latency_model(path: str | Path, by: Literal["graph"]) -> GraphLatencyModel: ...
@overload
def load_latency_model(
    path: str | Path, by: Literal["genes"], space: SearchSpace | None = None
) -> GeneLatencyModel: ...
def load_latency_model(path: str | Path, by: By | None = None, space: SearchSpace | None = None) -> LatencyModel:
    """Read what a latency model's ``save`` wrote, of any model.

    Args:
        by: what it has to read; None: either.
        space: the space it has to be fitted for; of models by genes.

    Raises:
        DataError: the file is missing, damaged, of a newer version, something else, or a model of the other sort.
        SpaceError: it was fitted for another space.
    """
    if not Path(path).is_file():
        raise DataError(f"file not found: {path}; {_MADE_BY.get(by or 'genes')!r} makes a latency model{_by(by)}")
    networks = _is_safetensors(path) or (by == "graph" and Path(path).suffix not in _BY_GENES)
    found = _network_model(path) if networks else _space_model(path)
    if by is not None and found.by != by:
        raise DataError(f"{path} holds latency model {found.name!r}, which reads {_OTHER[found.by].format(path=path)}")
    if space is not None and isinstance(found, GeneLatencyModel):
        found.check_space(space, path)
    return found


_OTHER = {
    "genes": (
        "genes of one search space and no networks; expected one by graph, which 'nas-ext latency train' makes of"
        " measured networks"
    ),
    "graph": (
        "graphs of networks and no genes; predict architectures with 'nas-ext latency collect --predicted-by {path}',"
        " fit a model by genes to them with 'nas-ext latency fit', and give that"
    ),
}
"""What to do with a model by genes, or by graph, where the other is needed."""


def _by(by: str | None) -> str:
    return "" if by is None else f" by {by}"


def _is_safetensors(path: str | Path) -> bool:
    """By its name, or by its first bytes: the length of a JSON object, and that object."""
    if (suffix := Path(path).suffix) in (".safetensors", *_BY_GENES):
        return suffix == ".safetensors"
    with Path(path).open("rb") as file:
        return file.read(9)[8:] == b"{"


def _space_model(path: str | Path) -> GeneLatencyModel:
    header, arrays = read_model_file(path)
    name = header.get("kind")
    if not isinstance(name, str):
        raise DataError(f"{path}: latency model is damaged (no kind); fit it anew")
    return latency_model(name, "genes").restored(header, arrays, path)


def _network_model(path: str | Path) -> GraphLatencyModel:
    header, tensors = read_artifact(path, (OF_NETWORKS, NNFormerPredictor.name))
    try:
        name = str(about_of(header)["model"])
    except DataError:
        raise DataError(
            f"{path} predicts no latency of whole networks; 'nas-ext latency train' makes such a model"
        ) from None
    if name not in LATENCY_MODELS.names():
        raise DataError(f"{path} holds a model {name!r}; this release has {', '.join(list_latency_models('graph'))}")
    try:
        return latency_model(name, "graph").restored(header, tensors)
    except (*_ALTERED, NasExtError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: the latency model is damaged ({reason[:120]}); train it anew") from None
