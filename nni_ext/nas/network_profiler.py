"""Latency models of whole networks as profilers of NNI."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nas_core.graph import GraphError
from nas_core.latency.by_graph import GraphLatencyModel
from nas_core.latency.by_graph.predict import NetworkPrediction, opened, predict_read, read_module
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import Sample

_FEATURE = "profiling model spaces of NNI with a latency model of networks"
_Profiler: Any = host_class("nni.nas.profiler", "Profiler", _FEATURE)


class NetworkLatencyProfiler(_Profiler):
    """Milliseconds of any sample of any model space that torch can export: the sample's network is built, exported to
    ONNX in memory and predicted. Takes 0.1 to 1 s for each new sample; each is computed once. As a limit of a search of
    ours it is asked for few more samples than are evaluated: RankNAS asks it for the best-ranked ones alone.

    Example:
        >>> profiler = NetworkLatencyProfiler(MobileNetV3Space(), torch.zeros(1, 3, 224, 224), "cpu.safetensors")
        >>> strategy = nni_ext.SearchStrategy("evolution", constraints={"latency_ms": (profiler, 20.0)})

    Args:
        model_space: any of NNI's, also as strategies hold it.
        example_input: what a network of the space takes, for the shapes.
        model: of ``nas-ext latency train``, or the path of its file; default: the shipped one, of onnxruntime.

    Raises:
        DataError: the file is missing or holds no such model. MissingHostError: NNI is absent.
    """

    together = 8
    """Samples that a search asks for at once."""

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
        self._known: dict[str, NetworkPrediction] = {}

    def profile(self, sample: Sample) -> float:
        """Milliseconds of one sample.

        Raises:
            GraphError: torch cannot export its network, or the network is so far from those of the model's training
                that the prediction cannot be a limit. nni.mutable.SampleValidationError: it is none of the space.
        """
        return self.profile_many([sample])[0]

    def profile_many(self, samples: Sequence[Sample]) -> list[float]:
        """Profile several samples; raises what :meth:`profile` does."""
        keys = [json.dumps(sample, sort_keys=True, default=str) for sample in samples]
        fresh = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in self._known}
        networks = [
            read_module(self._network(sample), self.example_input, self.model.features) for sample in fresh.values()
        ]
        self._known |= dict(zip(fresh, predict_read(networks, self.model) if networks else (), strict=True))
        predictions = [self._known[key] for key in keys]
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
