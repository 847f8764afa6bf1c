"""Predictions of a latency model of networks, as training data for a faster model of one search space."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from nas_core.files.reading import file_digest
from nas_core.latency.by_genes.collect import Measured, reference_architecture
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.predict import predict_read, read_module
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement
from nas_core.latency.registry import load_latency_model
from nas_core.models.kind import kind_of
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace

_NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal distribution


class PredictedMeasurements:
    """Latency predictions of architectures, for the argument ``measure_many`` of ``collect``.

    Args:
        config: settings of the network inputs, a dataclass of the space's type of network.
        path: file of a latency model of networks, which predicts the ONNX export of each architecture.
    """

    def __init__(self, space: SearchSpace, config: Any, path: str | Path) -> None:
        self.space, self.config, self.kind = space, config, kind_of(space)
        self.model: GraphLatencyModel = load_latency_model(path, "graph")
        self._digest = file_digest(path)[:16]
        machine = self.model.info.get("machine")
        self._machine = dict(machine) if isinstance(machine, dict) else describe_machine("cpu", 1)

    @property
    def described(self) -> dict[str, Any]:
        held_out = self.model.info.get("held_out")
        return {
            "kind": "predicted",
            "of": self.kind.workload_to_dict(self.config),
            "model": self.model.name,
            "model_sha256": self._digest,
            "runtime": self.model.info.get("runtime"),
            "held_out_mape_percent": held_out.get("mape_percent") if isinstance(held_out, dict) else None,
        }

    def __call__(self, architectures: Sequence[Architecture]) -> Generator[Measured, None, None]:
        reference_ms = sum(self._components_ms(reference_architecture(self.space))[0].values())
        for architecture in architectures:
            components_ms, deviation_ms = self._components_ms(architecture)
            total = sum(components_ms.values())
            mad_ms = _NORMAL_MAD * deviation_ms
            predicted = Measurement(components_ms, total, deviation_ms, mad_ms, reference_ms, total / reference_ms)
            yield Measured(self._machine, reference_ms, predicted)

    def _components_ms(self, architecture: Architecture) -> tuple[dict[str, float], float]:
        with own_streams():
            exports = self.kind.exports(self.space, architecture, self.config)
        networks = [read_module(export.module, export.inputs) for export in exports]
        predicted = predict_read(networks, self.model)
        times = {export.name: export.times * p.latency_ms for export, p in zip(exports, predicted, strict=True)}
        return times, sum(export.times * p.std_ms for export, p in zip(exports, predicted, strict=True))
