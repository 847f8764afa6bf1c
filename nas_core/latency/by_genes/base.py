"""Base class of latency models of one search space, and their files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, SpaceError, unknown_choice
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.latency.model import Floats, LatencyModel
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict
from nas_core.space.slots import Rows

Inputs = NDArray[Any]
"""Encoded architectures: genes of each layer ``(n, slots)``, or averages over layers ``(n, choices)``."""

SOURCES = ("rows", "summary")
MIN_RECORDS = 10
FORMAT = "nas-ext/latency-model"
VERSION = 1

_FLOOR_DIVISOR = 3  # a prediction is at least the fastest measurement divided by this
_NORMAL_90 = 2 * 1.645  # width of the central 90 % interval of a normal distribution, in standard deviations


class GeneLatencyModel(LatencyModel):
    """Latency model for the architectures of one search space.

    Args:
        source: encoding of architectures: ``rows`` (option index of each slot) or ``summary`` (averages over layers).
        config: settings; None: defaults.
    """

    by = "genes"

    def __init__(self, space: SearchSpace, source: str = "rows", config: Any = None) -> None:
        if source not in SOURCES:
            raise unknown_choice("source of a latency model", source, SOURCES)
        self.space = space
        self.source = source
        self.config = self.config_class() if config is None else config
        self.interval = (0.0, float("inf"))
        """5 % and 95 % quantiles of measured / predicted latency on held-out rows."""
        self.floor_ms = 0.0
        self.info: dict[str, Any] = {}
        """Provenance: ``machine``, ``settings``, ``reference_ms``, ``metrics``."""
        self.fitted = False

    def fit(self, inputs: Inputs, latency_ms: Floats) -> Self:
        """Fit the model to encoded architectures and their latency in ms ``(n,)``.

        Raises:
            DataError: there are fewer than 10 rows, or a value is invalid.
        """
        inputs, latency_ms = np.asarray(inputs), np.asarray(latency_ms, np.float64)
        self._check(inputs, latency_ms)
        self.floor_ms = float(latency_ms.min() / _FLOOR_DIVISOR)
        low, high = np.quantile(self.learn(inputs, latency_ms), (0.05, 0.95))
        self.interval = (float(low), float(high))
        self.fitted = True
        return self

    def predict_inputs(self, inputs: Inputs) -> Floats:
        """Return the latency in ms ``(n,)`` of architectures encoded as in :meth:`fit`."""
        if not self.fitted:
            raise ConfigError("this latency model is not fitted; call fit, or load a fitted model")
        return self.estimate(inputs)

    def predict_rows(self, rows: Rows) -> Floats:
        """Return the latency in ms ``(n,)`` of architectures as option indices ``(n, slots)``."""
        return self.predict_inputs(rows if self.source == "rows" else self.space.encode_rows(rows, "summary"))

    def predict(self, architectures: Sequence[Architecture] | Architecture) -> Floats:
        """Return the latency in ms ``(n,)`` of architectures.

        Raises:
            ArchitectureError: an architecture is not in the search space.
        """
        if isinstance(architectures, Architecture):
            architectures = [architectures]
        return self.predict_rows(self.space.rows(architectures))

    def predict_with_std(self, architectures: Sequence[Architecture] | Architecture) -> tuple[Floats, Floats]:
        predicted, (low, high) = self.predict(architectures), self.interval
        return predicted, predicted * (high - low) / _NORMAL_90

    def _check(self, inputs: Inputs, latency_ms: Floats) -> None:
        width = self.space.slots.count if self.source == "rows" else len(self.space.choices)
        if inputs.shape != (len(latency_ms), width):
            raise DataError(
                f"got inputs of shape {inputs.shape} with {len(latency_ms)} latencies; expected inputs (n, {width}) and"
                f" n latencies for space {self.space.name!r}"
            )
        if len(inputs) < MIN_RECORDS:
            raise DataError(f"got {len(inputs)} measurements, expected at least {MIN_RECORDS}; measure more")
        if (bad := np.flatnonzero(~(np.isfinite(latency_ms) & (latency_ms > 0)))).size:
            raise DataError(
                f"latency of measurement {bad[0] + 1} is {latency_ms[bad[0]]}, expected milliseconds above 0;"
                " remove it or measure it again"
            )

    @abstractmethod
    def learn(self, inputs: Inputs, latency_ms: Floats) -> Floats:
        """Fit to validated inputs, and return the ratios measured / predicted latency of held-out rows."""

    @abstractmethod
    def estimate(self, inputs: Inputs) -> Floats:
        """Return the latency in ms ``(n,)`` of encoded architectures."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted parameters as JSON values and arrays."""

    @abstractmethod
    def restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Set the fitted parameters to a result of :meth:`state`."""

    def save(self, path: str | Path) -> None:
        settings, arrays = self.state()
        content = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.name,
            "source": self.source,
            "space": space_to_dict(self.space),
            "interval": list(self.interval),
            "floor_ms": self.floor_ms,
            "settings": settings,
            "info": self.info,
            "arrays": arrays,
        }
        write_json(path, content)

    @classmethod
    def restored(cls, header: Mapping[str, Any], path: str | Path) -> Self:
        try:
            arrays = {name: np.asarray(values) for name, values in header["arrays"].items()}
            model = cls(space_from_dict(header["space"], str(path)), header["source"])
            model.restore(header["settings"], arrays)
            model.interval = (float(header["interval"][0]), float(header["interval"][1]))
            model.floor_ms = float(header["floor_ms"])
            model.info = dict(header["info"])
            model.fitted = True
            model.predict(model.space.smallest())  # arrays of other shapes
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise DataError(
                f"{path}: latency model is damaged ({type(error).__name__}: {error}); fit it again"
            ) from None
        return model

    def check_space(self, space: SearchSpace, path: str | Path) -> None:
        """Raise a SpaceError if the model was fitted for another search space."""
        if space != self.space:
            raise SpaceError(
                f"{path} predicts for space {self.space.name!r}, which differs from {space.name!r}; measure and fit a"
                f" model for {space.name!r}, or use the space of the model"
            )


def read_model_file(path: str | Path) -> dict[str, Any]:
    """Return the content of a file of :meth:`GeneLatencyModel.save`."""
    content: Any = read_json(path)
    kind = (content.get("format"), content.get("version")) if isinstance(content, dict) else None
    if kind != (FORMAT, VERSION):
        raise DataError(
            f"{path} is not a latency model: format and version are {kind}, expected {(FORMAT, VERSION)}; give a file"
            " of 'nas-ext latency fit'"
        )
    return dict(content)
