"""Profilers and evaluators of NNI that predict accuracy or latency."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nas_core.errors import ConfigError, SpaceError
from nas_core.files.reading import real_path
from nas_core.graph import Graph, GraphError
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.predict import NetworkPrediction, opened, predict_read, read_module
from nas_core.models import kind_of
from nas_core.predictor import AccuracyModel, load_accuracy_model
from nas_core.space.files import space_from_dict
from nas_core.space.labels import architecture_of
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import (
    Sample,
    nasbench101_sample,
    nasbench201_sample,
    nasbench201_unpruned_sample,
)

_FEATURE = "profiling model spaces of NNI with a predictor"
_EVALUATING = "evaluating models of NNI with a predictor"
_Profiler: Any = host_class("nni.nas.profiler", "Profiler", _FEATURE)
_Evaluator: Any = host_class("nni.nas.evaluator", "Evaluator", _EVALUATING)

Read = Callable[[Sample], Graph]
"""Function from a sample to its graph."""


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
"""Class of a model space -> function from the arguments of the class to graph readers by name, the default first."""


def reader_for(space: Any, name: str | None = None) -> Read:
    """Return the function from samples to graphs for a model space or one of its models.

    Args:
        name: name of the graph reader; default: the first one for the model space.

    Raises:
        SpaceError: the model space is not supported.
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
            reader = next(iter(readers)) if name is None else name
            if reader not in readers:
                raise ConfigError(
                    f"the graph reader of the predictor is {reader!r}, but {base.__name__} has the readers"
                    f" {' or '.join(readers)}; give another predictor, or one of these readers as reader="
                )
            return readers[reader]
    raise SpaceError(
        f"model space {getattr(kind, '__name__', kind)} is not supported; give NasBench101 or NasBench201 of"
        " nni.nas.hub.pytorch, a space of nni_ext.as_model_space, or read=, a function from a sample to a"
        " nas_core.graph.Graph"
    )


def reader_name(predictor: AccuracyModel, requested: str | None) -> str | None:
    """Return ``requested``, or by default the graph reader that the predictor was trained with."""
    trained = predictor.info.get("reader")
    return requested if requested is not None or not isinstance(trained, str) else trained


def open_predictor(predictor: AccuracyModel | str | Path) -> AccuracyModel:
    """Return a predictor; read it if a file is given."""
    if isinstance(predictor, str | Path):
        return load_accuracy_model(predictor)
    if not isinstance(predictor, AccuracyModel):
        raise ConfigError(f"the predictor is {predictor!r:.80}; expected an accuracy predictor, or its file")
    return predictor


class PredictorProfiler(_Profiler):
    """NNI profiler that returns a predictor's accuracy or latency.

    Example:
        >>> profiler = PredictorProfiler(NasBench201(), "accuracy.safetensors")
        >>> strategy = RandomOneShot(filter=RangeProfilerFilter(profiler, min=90.0))

    Args:
        model_space: NasBench101 or NasBench201 of NNI's hub, or a space of ``as_model_space``.
        predictor: fitted predictor, or its file.
        reader: name of the function from samples to graphs; default: the one used for training the predictor. Latency
            on NAS-Bench-201 needs ``nasbench201_unpruned``.
        read: function from a sample to a graph, for other model spaces.
    """

    def __init__(
        self,
        model_space: Any,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
    ) -> None:
        super().__init__(model_space)
        if read is None:
            reader_for(model_space)  # reject a wrong space before a file is opened
        self.predictor = open_predictor(predictor)
        self.read = reader_for(model_space, reader_name(self.predictor, reader)) if read is None else read

    def profile(self, sample: Sample) -> float:
        """Return the prediction for a sample, in the unit of the predictor's training targets.

        Raises:
            GraphError: the sample lacks a label, or its graph differs too much from the training graphs.
        """
        return self.profile_many([sample])[0]

    def profile_many(self, samples: Sequence[Sample]) -> list[float]:
        graphs = [self.read(sample) for sample in samples]
        return [float(value) for value in self.predictor.predict(graphs)]


class NetworkLatencyProfiler(_Profiler):
    """NNI profiler that returns the predicted latency in ms, for model spaces whose networks torch can export to ONNX.

    A prediction takes 0.1 to 1 s and is cached.

    Example:
        >>> profiler = NetworkLatencyProfiler(MobileNetV3Space(), torch.zeros(1, 3, 224, 224), "cpu.safetensors")
        >>> strategy = nni_ext.SearchStrategy("evolution", constraints={"latency_ms": (profiler, 20.0)})

    Args:
        model_space: model space of NNI.
        example_input: example input of the networks, which also sets the shapes.
        model: latency model of ``nas-ext latency train``, or its file; default: the included model for onnxruntime.
    """

    batch_size = 8
    """Number of samples that a search profiles in one call."""

    def __init__(
        self,
        model_space: Any,
        example_input: Tensor | tuple[Tensor, ...],
        model: GraphLatencyModel | str | Path | None = None,
    ) -> None:
        super().__init__(model_space)
        self.space = model_space
        self.example_input = example_input
        self.model = opened(model)
        self._predictions: dict[str, NetworkPrediction] = {}

    def profile(self, sample: Sample) -> float:
        """Return the predicted latency of a sample in ms.

        Raises:
            GraphError: torch cannot export the network, or it differs too much from the latency model's training data.
        """
        return self.profile_many([sample])[0]

    def profile_many(self, samples: Sequence[Sample]) -> list[float]:
        keys = [json.dumps(sample, sort_keys=True, default=str) for sample in samples]
        fresh = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in self._predictions}
        networks = [read_module(self._network(sample), self.example_input) for sample in fresh.values()]
        self._predictions |= dict(zip(fresh, predict_read(networks, self.model) if networks else (), strict=True))
        predictions = [self._predictions[key] for key in keys]
        for prediction in predictions:
            if prediction.out_of_range:
                raise GraphError(
                    f"the prediction of {prediction.latency_ms:.3g} ms is not reliable for a network with"
                    f" {prediction.out_of_range}; train a latency model on networks like this ('nas-ext latency train')"
                    f" instead of the model for {prediction.machine}"
                )
        return [prediction.latency_ms for prediction in predictions]

    def _network(self, sample: Sample) -> nn.Module:
        frozen = self.space.freeze(sample)
        executable = nni_module("nni.nas.space", _FEATURE).ExecutableModelSpace
        network: nn.Module = frozen.executable_model() if isinstance(frozen, executable) else frozen
        return network


class PredictorEvaluator(_Evaluator):
    """NNI evaluator that reports a predictor's prediction instead of training the model.

    NNI's strategies maximise the metric. The reported result also has the standard deviation as ``std``. For NNI's
    training-service engine, ``predictor`` must be a file and ``read`` importable.

    Example:
        >>> evaluator = PredictorEvaluator("accuracy.safetensors")
        >>> NasExperiment(NasBench201(), evaluator, RegularizedEvolution(), config)

    Args:
        predictor: fitted predictor, or its file.
        reader: see :class:`~nni_ext.PredictorProfiler`.
        read: see :class:`~nni_ext.PredictorProfiler`.
    """

    def __init__(
        self,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
    ) -> None:
        self.predictor = open_predictor(predictor)
        self.path = str(real_path(predictor)) if isinstance(predictor, str | Path) else None
        self.read, self.reader = read, reader

    def evaluate(self, model: Any) -> float:
        """Return the prediction for a frozen model; in a trial, also report it to NNI."""
        read = self.read or reader_for(model, reader_name(self.predictor, self.reader))
        sample = getattr(model, "sample", None)
        if sample is None:
            raise ConfigError(
                "the model has no sample; give the return value of freeze(sample) of an executable model space"
            )
        predicted, std = self.predictor.predictions([read(sample)])
        metric = float(predicted[0])
        extra = {} if std is None else {"std": float(std[0])}
        reported = {"default": metric, **extra} if extra else metric
        nni = nni_module("nni", _EVALUATING)
        if nni.get_current_parameter() is not None:
            nni.report_intermediate_result(reported)
            nni.report_final_result(reported)
        return metric

    def _execute(self, model: Any) -> float:
        return self.evaluate(model)

    def _dump(self) -> dict[str, Any]:
        if self.path is None:
            raise ConfigError(
                "the predictor is an object in memory, which cannot be sent to NNI's trials; save it and give its path,"
                " or use the sequential engine"
            )
        return {"predictor": self.path, "read": self.read, "reader": self.reader}

    @classmethod
    def _load(cls, **fields: Any) -> PredictorEvaluator:
        return cls(**fields)
