"""Predictors of accuracy and latency as profilers of NNI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nas_core.graph import GraphError
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.predict import NetworkPrediction, opened, predict_read, read_module
from nas_core.predictor import AccuracyModel
from nas_core.predictor.targets import checked_levels
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import Sample
from nni_ext.nas.readers import Read, open_predictor, reader_for, reader_name

_FEATURE = "profiling model spaces of NNI with a predictor"
_Profiler: Any = host_class("nni.nas.profiler", "Profiler", _FEATURE)


class PredictorProfiler(_Profiler):
    """Predictions for samples (accuracy, latency), for NNI's ``RangeProfilerFilter`` and ``SampleProfilerPenalty``.

    Example:
        >>> profiler = PredictorProfiler(NasBench201(), "accuracy.safetensors")
        >>> strategy = RandomOneShot(filter=RangeProfilerFilter(profiler, min=90.0))

    Args:
        model_space: NasBench101 or NasBench201 of NNI's hub, or a space of ``as_model_space``.
        predictor: fitted predictor, or its file.
        reader: name of a graph reader; default: that of the predictor's training, else that of accuracy. Latency on
            NAS-Bench-201 needs ``nasbench201_unpruned``.
        read: function from a sample to a graph, for model spaces of other classes.
        quantile: quantile to return: 0.9 for a filter with ``max=``, 0.1 for ``min=``; default: the prediction.

    Raises:
        DataError, ConfigError: an invalid predictor, reader or quantile.
        SpaceError: a model space of another class without ``read``.
    """

    def __init__(
        self,
        model_space: Any,
        predictor: AccuracyModel | str | Path,
        *,
        read: Read | None = None,
        reader: str | None = None,
        quantile: float | None = None,
    ) -> None:
        super().__init__(model_space)
        if read is None:
            reader_for(model_space)  # reject a wrong space before a file is opened
        self.predictor, self.quantile = open_predictor(predictor), quantile
        if quantile is not None:
            checked_levels([quantile])
            self.predictor.require_std()
        self.read = reader_for(model_space, reader_name(self.predictor, reader)) if read is None else read

    def profile(self, sample: Sample) -> float:
        """Return the prediction for a sample, in the units of the predictor's targets.

        Raises:
            GraphError: a label is missing, or the predictor was not fitted for such graphs.
        """
        return self.profile_many([sample])[0]

    def profile_many(self, samples: Sequence[Sample]) -> list[float]:
        """Return the predictions for several samples, which is faster."""
        graphs = [self.read(sample) for sample in samples]
        if self.quantile is None:
            return [float(value) for value in self.predictor.predict(graphs)]
        return [float(value) for value in self.predictor.predict_quantiles(graphs, [self.quantile])[0]]


class NetworkLatencyProfiler(_Profiler):
    """Predicted milliseconds of samples of any model space that torch can export.

    A prediction exports the sample's network to ONNX in memory, in 0.1 to 1 s, and is cached. Searches of this project
    with this limit profile few more samples than they evaluate.

    Example:
        >>> profiler = NetworkLatencyProfiler(MobileNetV3Space(), torch.zeros(1, 3, 224, 224), "cpu.safetensors")
        >>> strategy = nni_ext.SearchStrategy("evolution", constraints={"latency_ms": (profiler, 20.0)})

    Args:
        model_space: model space of NNI.
        example_input: input of a network of the space.
        model: model of ``nas-ext latency train``, or its file; default: the shipped model of onnxruntime.
    """

    together = 8
    """Number of samples that a search profiles at once"""

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
        """Return the milliseconds of a sample.

        Raises:
            GraphError: torch cannot export the network, or it is too far from the model's training networks.
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
                    f"{prediction.latency_ms:.3g} ms are predicted for a network with {prediction.out_of_range}: too"
                    f" far to hold a limit; give a model of such networks ('nas-ext latency train'), this one is of"
                    f" {prediction.machine}"
                )
        return [prediction.latency_ms for prediction in predictions]

    def _network(self, sample: Sample) -> nn.Module:
        frozen = self.space.freeze(sample)
        executable = nni_module("nni.nas.space", _FEATURE).ExecutableModelSpace
        network: nn.Module = frozen.executable_model() if isinstance(frozen, executable) else frozen
        return network
