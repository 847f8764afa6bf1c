"""Base class, registry and loading of accuracy models."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nas_core.checks import checked_seed, checked_value
from nas_core.device import usable_device
from nas_core.errors import ConfigError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.io_nodes import common_ends, missing_ends, topological, with_ends
from nas_core.options import Configured, parsed_settings
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.progress import Progress, training_bar
from nas_core.predictor.targets import checked_targets
from nas_core.registry import Registry

Array = NDArray[np.float64]
UNSEEN = ("error", "warn", "ignore")
"""Reactions to operations that no training graph has."""
OPEN_SHARE = 0.5  # fraction of graphs without a single input and output node, above which both are added to all graphs
WITH_STD = "models statistics, prior and additive have one, and nn-former with members=2 or more"

_log = logging.getLogger(__name__)


class AccuracyModel(Configured, ABC):
    """Base class of models that predict one number per graph, such as an accuracy.

    A subclass defines :meth:`learn`, :meth:`estimate`, :meth:`tensors` and :meth:`restore`.

    Args:
        unseen: what to do with operations that no training graph has: ``error``, ``warn`` or ``ignore``.
        settings: fields of the model's ``config_class``.

    Raises:
        ConfigError, UnknownChoiceError: a setting is unknown or invalid.
    """

    called = "accuracy model"
    seed: int
    unseen: str

    def __init__(self, *, seed: int = 0, device: str = "cpu", unseen: str = "error", **settings: Any) -> None:
        self.check_settings(settings)
        checked_value(unseen, str, "treatment of unseen operations", choices=UNSEEN)
        self.config: Any = self.config_class(**settings)
        self.seed, self.device, self.unseen = checked_seed(seed), usable_device(device), unseen
        self.known_operations: frozenset[int] = frozenset()
        """Operation indices of the training graphs."""
        self._ends: tuple[int, int] | None = None  # operations of an input and an output added to each graph
        self.info: dict[str, Any] = {}
        """Saved provenance: number of ``graphs``, nodes of the ``largest``; ``precision``, ``device`` of NN-Former."""
        self._added_nodes = 0  # nodes and operations that the ends add to the graphs of a fit

    # -- defined by a subclass -----------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        """Fit at least two graphs to finite targets ``(G,)``. Change the model only at the end."""

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Return predictions ``(B,)`` and their standard deviation ``(B,)``, or None if there is none."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return the fitted parameters."""

    def header(self) -> dict[str, Any]:
        """Return fitted values other than tensors, for JSON."""
        return {}

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Set the fitted values to results of :meth:`header` and :meth:`tensors`."""

    @classmethod
    def from_header(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(seed=header["seed"], device=device, unseen=header["unseen"], **header["settings"])

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        """Adapt settings to all graphs that a later fit or prediction uses; return the changed settings."""
        return {}

    def facts(self) -> dict[str, Any]:
        return {}

    @property
    def ready(self) -> bool:
        """True if the model can predict: it is fitted, or has a prior."""
        return self.fitted

    @property
    def has_std(self) -> bool:
        return True

    # -- fitting and predicting ----------------------------------------------------------------------------------------

    def fit(
        self,
        graphs: Iterable[Graph] | Graphs,
        targets: ArrayLike,
        *,
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit graphs to targets ``(G,)``, from scratch. A failed fit leaves the model unchanged.

        Args:
            progress: function called with step, number of steps and loss; True: show a bar.
            checkpoint: file from which an interrupted fit resumes; removed at the end.

        Raises:
            DataError: there are too few graphs, or a target is invalid.
            GraphError: a graph is not supported.
            ConfigError: training diverged, or the device does not support the precision.
        """
        data = topological(Graphs.of(graphs))
        values = checked_targets(targets, len(data))
        training_operations = frozenset(np.unique(data.ops).tolist())
        info = {"graphs": len(data), "largest": int(data.sizes.max()), **self.facts()}
        ends = _missing_ends(data)
        graphs_with_ends = data if ends is None else with_ends(data, *ends)
        self._added_nodes = 0 if ends is None else len(ends)
        with training_bar() if progress is True else nullcontext(progress or None) as report:
            self.learn(graphs_with_ends, values, report, None if checkpoint is None else Path(checkpoint))
        self.known_operations, self.info, self._ends = training_operations, info, ends
        return self

    @property
    def fitted(self) -> bool:
        return bool(self.known_operations)

    def require_std(self) -> None:
        if not self.has_std:
            self._present(None)

    def require_fitted(self) -> None:
        if not self.fitted:
            raise ConfigError("this predictor was not fitted; call fit, or load a fitted predictor")

    def predict(self, graphs: Iterable[Graph] | Graphs) -> Array:
        """Return predictions ``(B,)`` in the units of the targets.

        Raises:
            ConfigError: the model is not fitted.
            GraphError: a graph is too large, or has an unseen operation.
        """
        return self.predictions(graphs)[0]

    def predict_with_std(self, graphs: Iterable[Graph] | Graphs) -> tuple[Array, Array]:
        """Return predictions ``(B,)`` and their standard deviation ``(B,)``, in the units of the targets.

        Raises:
            ConfigError: the model has no standard deviation, or is not fitted.
        """
        predicted, deviation = self.predictions(graphs)
        return predicted, self._present(deviation)

    def predictions(self, graphs: Iterable[Graph] | Graphs) -> tuple[Array, Array | None]:
        """Return the result of :meth:`predict_with_std`, with None if the model has no standard deviation."""
        data = self._read(graphs)
        return (np.zeros(0), np.zeros(0)) if data is None else self.estimate(self._with_ends(data))

    def _read(self, graphs: Iterable[Graph] | Graphs) -> Graphs | None:
        if not self.ready:
            self.require_fitted()
        data = topological(Graphs.of(graphs))
        if not len(data):
            return None
        if self.fitted:
            self._check_seen(data)
        return data

    def _with_ends(self, graphs: Graphs) -> Graphs:
        if self._ends is None:
            return graphs
        unseen = np.isin(graphs.ops, self._ends)  # the added ends have the same index, but are other operations
        if unseen.any():
            graphs = replace(graphs, ops=np.where(unseen, max(self._ends) + 1, graphs.ops).astype(graphs.ops.dtype))
        return with_ends(graphs, *self._ends)

    def _present(self, values: Array | None) -> Array:
        if values is None:
            remedy = WITH_STD if not self.has_std else "call fit first"
            raise ConfigError(f"{self.name!r} has no standard deviation{' before a fit' * self.has_std}; {remedy}")
        return values

    def unseen_in(self, graphs: Graphs) -> dict[int, int]:
        """Return the operations that no training graph has, each with the index of the first graph that has it."""
        graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
        ops, first = np.unique(graphs.ops, return_index=True)
        pairs = zip(ops.tolist(), graph_of_node[first].tolist(), strict=True)
        return {op: graph for op, graph in pairs if op not in self.known_operations}

    def _check_seen(self, graphs: Graphs) -> None:
        if self.unseen == "ignore" or not (new := self.unseen_in(graphs)):
            return
        message = f"no training graph has operation {', '.join(map(str, new))}, only {sorted(self.known_operations)}"
        if self.unseen == "error":
            raise GraphError(
                f"{message}, but graph {min(new.values())} (from 0) has it; fit to graphs that have it, or give"
                " unseen='warn' (--unseen warn)"
            )
        _log.warning("%s; predictions for graphs with it are guesses", message)

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a ``.safetensors`` file."""
        write_artifact(path, self.name, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        self.require_fitted()
        common = {
            "seed": self.seed, "unseen": self.unseen, "settings": asdict(self.config),
            "known": sorted(self.known_operations), "info": self.info, "ends": self._ends,
        }  # fmt: skip
        return {**common, **self.header()}, self.tensors()

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", unseen: str | None = None) -> Self:
        """Load a model of this class; :func:`nas_core.predictor.load_accuracy_model` loads any accuracy model."""
        return cls.restored(*read_artifact(path, cls.name), device, unseen)

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str = "cpu", unseen: str | None = None
    ) -> Self:
        """Create a fitted model from the result of :meth:`contents`."""
        model = cls.from_header({**header, "unseen": unseen or header["unseen"]}, device)
        model.restore(header, tensors)
        model.known_operations, model.info = frozenset(header["known"]), dict(header["info"])
        ends = header["ends"]
        model._ends = None if ends is None else (ends[0], ends[1])
        return model


def _missing_ends(graphs: Graphs) -> tuple[int, int] | None:
    if missing_ends(graphs, common_ends(graphs)).mean() <= OPEN_SHARE:
        return None
    first = max(int(graphs.ops.max()) + 1, len(graphs.operations or ()))
    _log.info("most graphs have several input or output nodes; one of both is added to each graph")
    return first, first + 1


ACCURACY_MODELS: Registry[type[AccuracyModel]] = Registry(
    "accuracy model",
    "nas_ext.accuracy_models",
    {
        "nn-former": "nas_core.predictor.estimator:NNFormerPredictor",
        "statistics": "nas_core.predictor.statistics.predictor:StatisticsPredictor",
        "prior": "nas_core.predictor.statistics.predictor:PriorPredictor",
        "additive": "nas_core.predictor.statistics.additive:AdditivePredictor",
    },
    AccuracyModel,
    of_classes=True,
)
"""Classes of accuracy models by name; other packages add entry points in the group ``nas_ext.accuracy_models``."""


def load_accuracy_model(path: str | Path, device: str = "cpu", unseen: str | None = None) -> AccuracyModel:
    """Load any accuracy model from its file.

    Args:
        unseen: what to do with operations that no training graph has: ``error``, ``warn``, ``ignore``; None: as saved.

    Raises:
        DataError: the file is missing, damaged, of another version or not an accuracy model.
    """
    header, tensors = read_artifact(path, ACCURACY_MODELS.names())
    return ACCURACY_MODELS.get(header["kind"]).restored(header, tensors, device, unseen)


def parsed_accuracy_settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """Parse ``["epochs=20"]`` into settings of an accuracy model."""
    return parsed_settings(texts, ACCURACY_MODELS.get(name).setting_types(), f"accuracy model {name!r}")
