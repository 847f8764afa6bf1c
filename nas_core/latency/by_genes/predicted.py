"""Architectures of a space predicted instead of measured, as ``nas-ext latency collect`` writes them: the fast model of
the space that is fitted to them then serves searches at full speed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from nas_core.files import file_digest
from nas_core.latency.by_genes.collect import Measured, reference_architecture
from nas_core.latency.by_graph.base import GraphLatencyModel
from nas_core.latency.by_graph.predict import predict_read, read_module
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement
from nas_core.latency.registry import load_latency_model
from nas_core.models.kind import SpacePart, kind_of
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace

_NORMAL_MAD = 0.6745
"""Median absolute deviation of a normal distribution with deviation 1."""


class PredictedMeasurements:
    """``measure_many`` of :func:`nas_core.latency.by_genes.collect` that exports each architecture's networks to
    ONNX in memory and predicts them.

    Args:
        config: settings of the workload of the space's kind of network.

    Raises:
        DataError: the file is missing or holds no latency model of whole networks. SpaceError: the space's networks are
            of no known kind.
    """

    def __init__(self, space: SearchSpace, config: Any, path: str | Path) -> None:
        self.space, self.config, self.kind = space, config, kind_of(space)
        self.model: GraphLatencyModel = load_latency_model(path, "graph")
        self._digest = file_digest(path)[:16]
        machine = self.model.info.get("machine")
        self._machine = dict(machine) if isinstance(machine, dict) else describe_machine("cpu", 1)
        self._reference_ms: float | None = None

    @property
    def described(self) -> dict[str, Any]:
        """What stands in the file's settings for a workload: that these are predictions, of what, and by which
        model."""
        held_out = self.model.info.get("held_out")
        return {
            "kind": "predicted",
            "of": self.kind.described(self.config),
            "model": self.model.name,
            "model_sha256": self._digest,
            "runtime": self.model.info.get("runtime"),
            "held_out_mape_percent": held_out.get("mape_percent") if isinstance(held_out, dict) else None,
        }

    def __call__(self, architectures: Sequence[Architecture]) -> Generator[Measured, None, None]:
        """Yield the prediction for each architecture in order.

        Raises:
            GraphError: torch cannot export one.
        """
        if self._reference_ms is None:
            self._reference_ms = sum(self._parts_ms(reference_architecture(self.space))[0].values())
        for architecture in architectures:
            parts_ms, spread_ms = self._parts_ms(architecture)
            total = sum(parts_ms.values())
            relative = total / self._reference_ms
            mad_ms = _NORMAL_MAD * spread_ms
            found = Measurement(parts_ms, total, spread_ms, mad_ms, self._reference_ms, relative)
            yield Measured(self._machine, self._reference_ms, found)

    def _parts_ms(self, architecture: Architecture) -> tuple[dict[str, float], float]:
        """Milliseconds of each part, and the spread of their sum, as if their errors were one."""
        parts = self._parts(architecture)
        read = [read_module(part.module, part.inputs, self.model.features) for part in parts]
        predicted = predict_read(read, self.model)
        times = {part.name: part.times * p.latency_ms for part, p in zip(parts, predicted, strict=True)}
        return times, sum(part.times * p.spread_ms for part, p in zip(parts, predicted, strict=True))

    def _parts(self, architecture: Architecture) -> list[SpacePart]:
        with own_streams():
            return self.kind.parts(self.space, architecture, self.config)
