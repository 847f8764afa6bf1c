"""Base class of latency models of any network."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.unseen import (
    MAX_TRUSTED_STD,
    extrapolation_std,
    ranges_of,
    sizes_out_of_range,
    unseen_operations,
)
from nas_core.latency.model import Floats, LatencyModel
from nas_core.predictor.artifact import NETWORK_LATENCY, write_artifact
from nas_core.predictor.metrics import accuracy_within, mape
from nas_core.predictor.mixture import calibration_factor

MIN_NETWORKS = 10
MIN_MS = 1e-4

Progress = Callable[[int, int, float], None]
"""Function called with the step, the number of steps and the loss."""

_log = logging.getLogger(__name__)


class GraphLatencyModel(LatencyModel):
    """Latency model of any network, for one machine and runtime."""

    by = "graph"
    reads: ClassVar[tuple[str, ...]]
    """Features of graphs that the model needs: some of ``attributes``, ``shapes``, ``costs`` and ``static``."""

    device: torch.device = torch.device("cpu")
    """Torch device for fit and prediction; not saved."""

    def __init__(self, **settings: Any) -> None:
        self.check_settings(settings)
        self.config = self.config_class(**settings)
        self.known_operations: frozenset[int] = frozenset()
        self.relative_std = 0.0
        """Standard deviation of measured / predicted latency."""
        self._warned: set[int | str] = set()
        self.info: dict[str, Any] = {}
        """Provenance: ``networks``, ``families``, ``seed``, ``ranges`` of sizes, ``held_out`` metrics, and entries of
        the caller, such as ``machine`` and ``runtime``."""

    def on(self, device: str) -> Self:
        """Move the model to a device and return it. Models without torch stay on the CPU."""
        self.device = usable_device(device)
        self.move()
        return self

    def move(self) -> None:
        """Move the fitted state to :attr:`device`."""

    def fit(self, data: NetworkLatencies, *, seed: int = 0, progress: Progress | None = None) -> Self:
        """Fit the model to networks. A failed fit leaves the model unchanged.

        The standard deviation of predictions is too small until :meth:`calibrate` is called.

        Raises:
            DataError: there are fewer than ten networks.
            GraphError: the graphs lack features that the model needs.
        """
        if len(data) < MIN_NETWORKS:
            raise DataError(f"got {len(data)} networks, expected at least {MIN_NETWORKS}; measure more")
        self.check(data.graphs)
        seed = checked_seed(seed)
        self.learn(data, seed, progress)
        self.known_operations = frozenset(int(op) for op in np.unique(data.graphs.ops))
        families = {name: int((data.families == name).sum()) for name in data.family_names}
        self.info = {"networks": len(data), "families": families, "seed": seed, "ranges": ranges_of(data.graphs)}
        self._fit_std(data)
        return self

    def calibrate(self, data: NetworkLatencies) -> Self:
        """Set the standard deviation of predictions, and the metrics ``info["held_out"]``, from held-out networks."""
        predicted = self._fit_std(data)
        self.info["held_out"] = {
            "networks": len(data),
            "mape_percent": mape(predicted, data.latency_ms),
            "acc10_percent": accuracy_within(predicted, data.latency_ms),
        }
        return self

    def adapt(self, data: NetworkLatencies, machine: Mapping[str, Any]) -> Self:
        """Adapt the model to another machine, from networks measured there; ten small ones are enough.

        Predictions are multiplied by one factor. ``info["held_out"]`` has the errors, each network held out in turn,
        and the error before. A failed fit leaves the model unchanged.

        Args:
            machine: description of the machine, with ``device_name``.

        Raises:
            DataError: there are fewer than ten networks.
        """
        if len(data) < MIN_NETWORKS:
            raise DataError(f"got {len(data)} networks to adapt to, expected at least {MIN_NETWORKS}; measure more")
        self.check(data.graphs)
        ratios = np.log(data.latency_ms / np.maximum(self.estimate(data.graphs)[0], MIN_MS))
        leave_one_out = (ratios.sum() - ratios) / (len(ratios) - 1)
        before = mape(np.full(len(ratios), float(self.info.get("factor", 1.0))), np.exp(ratios))
        self.relative_std = calibration_factor(np.abs(np.expm1(ratios - leave_one_out)))
        self.info = {**self.info, "factor": float(np.exp(ratios.mean())), "machine": dict(machine)}
        self.info["held_out"] = {
            "networks": len(data),
            "mape_percent": mape(np.exp(leave_one_out), np.exp(ratios)),
            "acc10_percent": accuracy_within(np.exp(leave_one_out), np.exp(ratios)),
            "mape_before_percent": before,
        }
        return self

    def predict(self, graphs: Iterable[Graph] | Graphs) -> Floats:
        """Return the latency in ms ``(G,)``; warn once about operations and sizes outside the training data."""
        return self.predict_with_std(graphs)[0]

    def predict_with_std(self, graphs: Iterable[Graph] | Graphs) -> tuple[Floats, Floats]:
        """Return the latency in ms ``(G,)`` and its standard deviation ``(G,)``."""
        if not self.known_operations:
            raise ConfigError(f"this {self.name!r} latency model is not fitted; call fit, or load a fitted model")
        data = Graphs.of(graphs)
        if not len(data):
            return np.zeros(0), np.zeros(0)
        self.check(data)
        self._warn_unseen(data)
        predicted, deviation = self.estimate(data)
        if factor := self.info.get("factor"):
            predicted, deviation = predicted * factor, None
        predicted = np.maximum(predicted, MIN_MS)
        relative = np.hypot(self.relative_std, extrapolation_std(data, self.info["ranges"]))
        return predicted, np.hypot(relative * predicted, 0 if deviation is None else deviation)

    def out_of_range(self, graph: Graph) -> str:
        """Return a description of sizes so far outside the training range that predictions are guesses, or ''."""
        graphs, ranges = Graphs.of([graph]), self.info["ranges"]
        if extrapolation_std(graphs, ranges)[0] <= MAX_TRUSTED_STD:
            return ""
        return "; ".join(sizes_out_of_range(graphs, ranges).values())

    @abstractmethod
    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        """Fit to validated networks, and change the model only at the end."""

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        """Return the latency in ms ``(G,)`` and, for an ensemble, its standard deviation over members ``(G,)``."""

    def check(self, graphs: Graphs) -> None:
        if missing := [name for name in self.reads if getattr(graphs, name) is None]:
            raise GraphError(
                f"graphs have no {' and no '.join(missing)} features, which latency model {self.name!r} needs; read"
                " them by read_onnx"
            )

    def _warn_unseen(self, graphs: Graphs) -> None:
        static_only = self.reads == ("static",)
        operations = {} if static_only else unseen_operations(graphs, self.known_operations)
        if new := [name for op, name in operations.items() if op not in self._warned]:
            _log.warning(
                "no training network has operations %s; predictions of networks with them are guesses", ", ".join(new)
            )
        sizes = sizes_out_of_range(graphs, self.info["ranges"])
        if texts := [text for name, text in sizes.items() if name not in self._warned]:
            _log.warning("a network has %s; its prediction is an extrapolation", "; ".join(texts))
        self._warned |= operations.keys() | sizes.keys()

    def _fit_std(self, data: NetworkLatencies) -> Floats:
        predicted = self.predict(data.graphs)
        low, high = np.quantile(data.latency_ms / predicted, (0.16, 0.84))
        self.relative_std = float(high - low) / 2
        return predicted

    def save(self, path: str | Path) -> None:
        if not self.known_operations:
            raise ConfigError(f"this {self.name!r} latency model is not fitted; call fit before save")
        write_artifact(path, NETWORK_LATENCY, self.header(), self.tensors())

    @classmethod
    def restored(cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Self:
        """Create a fitted model from the results of :meth:`header` and :meth:`tensors`."""
        model = cls(**header["settings"])
        model.known_operations = frozenset(int(op) for op in header["known"])
        model.relative_std, model.info = float(header["relative_std"]), dict(header["info"])
        model.restore(header, tensors)
        return model

    def header(self) -> dict[str, Any]:
        """Return the name, settings and JSON values of the fitted model."""
        return {
            "model": self.name,
            "settings": asdict(self.config),
            "known": sorted(self.known_operations),
            "relative_std": self.relative_std,
            "info": self.info,
        }

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return the fitted parameters."""

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Set the fitted parameters to a result of :meth:`tensors`; ``header`` is the result of :meth:`header`."""
