"""What every latency model of whole networks has in common: fitting, predicting with a spread, one file."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from nas_core.checks import checked_seed
from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.unseen import (
    TRUSTED_SPREAD,
    beyond,
    extrapolation_spread,
    ranges_of,
    unseen_operations,
)
from nas_core.latency.model import Floats, LatencyModel
from nas_core.predictor.artifact import OF_NETWORKS, write_artifact
from nas_core.predictor.metrics import accuracy_within, mape

LEAST_NETWORKS = 10
LEAST_MS = 1e-4
"""No prediction is below."""

Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""

_log = logging.getLogger(__name__)


class GraphLatencyModel(LatencyModel):
    """Graphs of whole networks -> milliseconds on the machine and in the runtime that was measured.

    Args:
        settings: fields of the model's ``config_class``.

    Raises:
        ConfigError: an unknown setting, or a value that cannot be.
    """

    by = "graph"
    artifact: ClassVar[str] = OF_NETWORKS
    """Kind of its file."""
    reads: ClassVar[tuple[str, ...]]
    """Features of graphs that it needs: of ``attributes``, ``shapes``, ``costs``, ``static``."""

    def __init__(self, **settings: Any) -> None:
        self.check_settings(settings)
        self.config = self.config_class(**settings)
        self.known: frozenset[int] = frozenset()
        """Operations that training networks have."""
        self.relative_spread = 0.0
        """Half the width of the middle 68 % of measured / predicted."""
        self._told: set[int | str] = set()
        self.info: dict[str, Any] = {}
        """Facts of the training: ``networks``, ``families``, ``seed``, ``features`` (encoding of the operators),
        ``ranges`` (of sizes), ``held_out``, where torch learned ``trained_on`` (the device by name, the precision);
        and what the caller adds, such as ``machine`` and ``runtime``."""

    # -- fitting and predicting ----------------------------------------------------------------------------------------

    def fit(self, data: NetworkLatencies, *, seed: int = 0, progress: Progress | None = None) -> Self:
        """Learn from all these networks; members do so in turn, each with its own steps of ``progress``. The spread is
        then that of the training's residuals, which are too small: :meth:`calibrate` takes it from networks that were
        held out. A fit that fails leaves what was fitted before.

        Raises:
            DataError: fewer than ten networks. GraphError: graphs without what the model reads.
        """
        if len(data) < LEAST_NETWORKS:
            raise DataError(f"got {len(data)} networks, expected at least {LEAST_NETWORKS}; measure more")
        self.check(data.graphs)
        seed = checked_seed(seed)
        known = frozenset(int(op) for op in np.unique(data.graphs.ops))
        families = {name: int((data.families == name).sum()) for name in data.family_names}
        ranges = ranges_of(data.graphs)
        self.learn(data, seed, progress)
        self.known = known
        self.info = {"networks": len(data), "families": families, "seed": seed, "features": "corrected"}
        self.info |= {"ranges": ranges, **self.facts()}
        self._spread_over(data)
        return self

    def calibrate(self, data: NetworkLatencies) -> Self:
        """Take the spread, and the quality in ``info["held_out"]``, from networks that were not learned."""
        predicted = self._spread_over(data)
        self.info["held_out"] = {
            "networks": len(data),
            "mape_percent": mape(predicted, data.latency_ms),
            "acc10_percent": accuracy_within(predicted, data.latency_ms),
        }
        return self

    def predict(self, graphs: Iterable[Graph] | Graphs) -> Floats:
        """Milliseconds ``(G,)``, above 0. What no training network has is told once, in a warning: operations, by
        models that see them, batches, lengths of attention, and more than twice or less than half of all other sizes.

        Raises:
            ConfigError: nothing was fitted yet. GraphError: graphs without what the model reads.
        """
        return self.predict_with_spread(graphs)[0]

    def predict_with_spread(self, graphs: Iterable[Graph] | Graphs) -> tuple[Floats, Floats]:
        """Milliseconds ``(G,)`` and their standard deviation ``(G,)``: the relative residuals of held-out networks and,
        where the model has several members, their deviation, as independent parts. Families that were never seen exceed
        the residuals; members disagree on them. Networks beyond the training's sizes have a third part, see
        :func:`nas_core.latency.by_graph.unseen.extrapolation_spread`."""
        if not self.known:
            raise ConfigError(f"this {self.name!r} latency model is not fitted yet: call fit, or load one that is")
        data = Graphs.of(graphs)
        if not len(data):
            return np.zeros(0), np.zeros(0)
        self.check(data)
        self._tell_unseen(data)
        predicted, deviation = self.estimate(data)
        predicted = np.maximum(predicted, LEAST_MS)
        relative = np.hypot(self.relative_spread, extrapolation_spread(data, self._ranges, self.features))
        return predicted, np.hypot(relative * predicted, 0 if deviation is None else deviation)

    def out_of_range(self, graph: Graph) -> str:
        """Describe the sizes by which a network is so far beyond the training's that its prediction cannot be a limit;
        empty where it can."""
        graphs = Graphs.of([graph])
        if extrapolation_spread(graphs, self._ranges, self.features)[0] <= TRUSTED_SPREAD:
            return ""
        return "; ".join(beyond(graphs, self._ranges, self.features).values())

    def described(self) -> dict[str, Any]:
        """All settings, as plain types: equal ones learn equal models from equal data."""
        return asdict(self.config)

    @property
    def features(self) -> str:
        """Encoding of ONNX operators that the graphs must have, see :func:`nas_core.graph.onnx.read_onnx`."""
        return str(self.info.get("features", "corrected"))

    @property
    def _ranges(self) -> dict[str, list[float]]:
        found: dict[str, list[float]] = self.info["ranges"]
        return found

    @abstractmethod
    def learn(self, data: NetworkLatencies, seed: int, progress: Progress | None) -> None:
        """Learn from checked networks. What was learned replaces what was before at the very end, all at once."""

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Floats, Floats | None]:
        """Milliseconds ``(G,)`` of checked graphs, and their deviation over members ``(G,)`` where there are several;
        neither bounds nor the spread of residuals."""

    def facts(self) -> dict[str, Any]:
        """What is worth keeping of how the last fit computed, for ``info``."""
        return {}

    def check(self, graphs: Graphs) -> None:
        """Refuse graphs that the model cannot read.

        Raises:
            GraphError: there are such.
        """
        if absent := [name for name in self.reads if getattr(graphs, name) is None]:
            raise GraphError(
                f"graphs without {', '.join(absent)}; latency model {self.name!r} expects graphs of read_onnx"
            )
        if graphs.static is not None and "static" in self.reads and graphs.static.shape[1] != 4:
            raise GraphError(f"graphs with {graphs.static.shape[1]} static numbers; expected 4, as read_onnx gives")

    def _tell_unseen(self, graphs: Graphs) -> None:
        blind = self.reads == ("static",)
        operations = {} if blind else unseen_operations(graphs, self.known, self.features)
        if new := [name for op, name in operations.items() if op not in self._told]:
            _log.warning("no training network has operations of kind %s: such predictions are guesses", ", ".join(new))
        sizes = beyond(graphs, self._ranges, self.features)
        if far := [text for name, text in sizes.items() if name not in self._told]:
            _log.warning("a network has %s: such predictions are extrapolated", "; ".join(far))
        self._told |= operations.keys() | sizes.keys()

    def _spread_over(self, data: NetworkLatencies) -> Floats:
        predicted = self.predict(data.graphs)
        low, high = np.quantile(data.latency_ms / predicted, (0.16, 0.84))
        self.relative_spread = float(high - low) / 2
        return predicted

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file.

        Raises:
            ConfigError: nothing was fitted, or another ending. NasExtError: it cannot be written.
        """
        if not self.known:
            raise ConfigError(f"this {self.name!r} latency model is not fitted yet: there is nothing to save")
        write_artifact(path, self.artifact, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Header and tensors of the file."""
        return {"model": self.name, "settings": asdict(self.config), **self._header()}, self.tensors()

    @classmethod
    def restored(cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Self:
        """The model of such a header and tensors, the inverse of :meth:`contents`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        about = about_of(header)
        model = cls(**about["settings"])
        model._restore_header(about)
        model.restore(header, tensors)
        return model

    def _header(self) -> dict[str, Any]:
        return {"known": sorted(self.known), "relative_spread": self.relative_spread, "info": self.info}

    def _restore_header(self, header: Mapping[str, Any]) -> None:
        self.known = frozenset(int(op) for op in header["known"])
        self.relative_spread, self.info = float(header["relative_spread"]), dict(header["info"])

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All arrays that were learned."""

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Set what :meth:`tensors` gave; what all models have of the header is restored already."""


def about_of(header: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says of a latency model; NN-Former's are predictors, which say it in their ``info``.

    Raises:
        DataError: it says nothing of one.
    """
    info = header.get("info")
    found: Any = header if "model" in header else info.get("network_latency") if isinstance(info, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("model"), str):
        raise DataError("no latency model of networks")
    return found
