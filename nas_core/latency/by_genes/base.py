"""What every latency model has in common: fitting, predicting, and a file without pickle.

A model predicts for one search space. It reads either integer rows of that space (per-layer genes) or, when fitted to a
table that holds only averages, the space's summary encoding; architectures and rows can be asked for in both cases.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, NasExtError, SpaceError, unknown_choice
from nas_core.files import DAMAGED_ARCHIVE, read_json, write_atomic, write_json
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict
from nas_core.space.slots import Rows

__all__ = ["LEAST_RECORDS", "SOURCES", "GeneLatencyModel", "list_models", "load_model", "model_class", "register_model"]

Floats = NDArray[np.float64]
Inputs = NDArray[Any]
"""Rows ``(n, slots)`` or summary ``(n, choices)``, as the model's ``source`` says."""

FORMAT = "nas-ext/latency-model"
VERSION = 1
SOURCES = ("rows", "summary")
LEAST_RECORDS = 10
"""Fewer measurements than this are refused."""

_MODELS: dict[str, type[GeneLatencyModel]] = {}


def register_model(cls: type[GeneLatencyModel]) -> type[GeneLatencyModel]:
    """Decorator: makes a model known under its ``kind``. The same class again changes nothing.

    Raises:
        ConfigError: another class holds the name.
    """
    known = _MODELS.get(cls.kind)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(f"latency model {cls.kind!r} of {cls.__module__} is already registered by {known.__module__}")
    _MODELS[cls.kind] = cls
    return cls


def list_models() -> list[str]:
    return sorted(_MODELS)


def model_class(kind: str) -> type[GeneLatencyModel]:
    if kind not in _MODELS:
        raise unknown_choice("latency model", kind, list_models())
    return _MODELS[kind]


class GeneLatencyModel(ABC):
    """Architectures of one space -> milliseconds."""

    kind: ClassVar[str]

    def __init__(self, space: SearchSpace, source: str = "rows") -> None:
        if source not in SOURCES:
            raise unknown_choice("source of a latency model", source, SOURCES)
        self.space = space
        self.source = source
        self.interval = (0.0, float("inf"))
        """5 % and 95 % quantile of measured / predicted, on rows left out of the fit."""
        self.info: dict[str, Any] = {}
        """Where the model comes from: ``machine``, ``settings``, ``reference_ms``, ``metrics``."""
        self.fitted = False

    # -- fitting and predicting ----------------------------------------------------------------------------------------

    def fit(self, inputs: Inputs, latency_ms: Floats) -> Self:
        """Fit to inputs and latencies ``(n,)``.

        Raises:
            DataError: too few rows, shapes that disagree, latencies that are not finite and positive.
        """
        inputs, latency_ms = np.asarray(inputs), np.asarray(latency_ms, np.float64)
        self._check(inputs, latency_ms)
        ratios = self._fit(inputs, latency_ms)
        low, high = np.quantile(ratios, (0.05, 0.95))
        self.interval = (float(low), float(high))
        self.fitted = True
        return self

    def predict_inputs(self, inputs: Inputs) -> Floats:
        """Milliseconds ``(n,)`` for inputs as they were given to :meth:`fit`."""
        if not self.fitted:
            raise ConfigError("this latency model is not fitted yet: call fit, or load one that is")
        return self._predict(inputs)

    def predict_rows(self, rows: Rows) -> Floats:
        """Milliseconds ``(n,)`` for canonical rows of the space; the fast way for many candidates."""
        return self.predict_inputs(rows if self.source == "rows" else self.space.encode_rows(rows, "summary"))

    def predict(self, architectures: Sequence[Architecture] | Architecture) -> Floats:
        """Milliseconds ``(n,)``.

        Raises:
            ArchitectureError: one of them lies outside the model's space.
        """
        if isinstance(architectures, Architecture):
            architectures = [architectures]
        return self.predict_rows(self.space.rows(architectures))

    def _check(self, inputs: Inputs, latency_ms: Floats) -> None:
        width = self.space.slots.count if self.source == "rows" else len(self.space.choices)
        if inputs.ndim != 2 or inputs.shape[1] != width:
            raise DataError(f"got inputs of shape {inputs.shape}, expected (n, {width}) for space {self.space.name!r}")
        if latency_ms.shape != (len(inputs),):
            raise DataError(
                f"got {latency_ms.shape} latencies for {len(inputs)} architectures; give one number for each"
            )
        if len(inputs) < LEAST_RECORDS:
            raise DataError(f"got {len(inputs)} measurements, expected at least {LEAST_RECORDS}; collect more")
        bad = np.flatnonzero(~(np.isfinite(latency_ms) & (latency_ms > 0)))
        if bad.size:
            raise DataError(
                f"latency of measurement {bad[0] + 1} is {latency_ms[bad[0]]}, expected milliseconds above 0;"
                " remove it or measure it again"
            )
        if not np.isfinite(inputs).all():
            raise DataError("an architecture feature is not a finite number; correct or remove that row")

    @abstractmethod
    def _fit(self, inputs: Inputs, latency_ms: Floats) -> Floats:
        """Fit; returns measured / predicted of rows that were left out, for the interval."""

    @abstractmethod
    def _predict(self, inputs: Inputs) -> Floats: ...

    @abstractmethod
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Settings and weights."""

    @abstractmethod
    def _restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None: ...

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, or as NPZ when the name ends in .npz (smaller; of use for an MLP)."""
        settings, arrays = self._state()
        header = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "source": self.source,
            "space": space_to_dict(self.space),
            "interval": list(self.interval),
            "settings": settings,
            "info": self.info,
        }
        if str(path).endswith(".npz"):
            buffer = BytesIO()
            np.savez_compressed(buffer, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
            write_atomic(path, buffer.getvalue())
        else:
            write_json(path, {**header, "arrays": arrays})

    @classmethod
    def load(cls, path: str | Path, space: SearchSpace | None = None) -> Self:
        """Read a model of this class; see :func:`load_model`."""
        model = load_model(path, space)
        if not isinstance(model, cls):
            raise DataError(f"{path} holds a latency model of kind {model.kind!r}, expected {cls.kind!r}")
        return model


def load_model(path: str | Path, space: SearchSpace | None = None) -> GeneLatencyModel:
    """Read a model of any kind; with ``space``, insist that it was fitted for that space.

    Raises:
        DataError: the file is missing, no latency model, damaged, or of a newer version.
        SpaceError: the model was fitted for another space.
    """
    header, arrays = _read(path)
    if not isinstance(header, dict):
        raise DataError(f"{path} is no latency model; 'nas-ext latency fit' makes one")
    if header.get("format") != FORMAT:
        raise DataError(
            f"{path} is no latency model (format {header.get('format')!r}); 'nas-ext latency fit' makes one"
        )
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise DataError(
            f"{path} has version {header.get('version')!r}, this release reads up to {VERSION}; upgrade nas-ext"
        )
    try:
        saved = space_from_dict(header["space"], str(path))
        model = model_class(header["kind"])(saved, header["source"])
        model._restore(header["settings"], arrays)
        model.interval = (float(header["interval"][0]), float(header["interval"][1]))
        model.info = dict(header["info"])
    except NasExtError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(f"{path}: latency model is damaged ({type(error).__name__}: {error}); fit it anew") from None
    model.fitted = True
    if space is not None and space != saved:
        raise SpaceError(
            f"{path} predicts for space {saved.name!r}, which differs from {space.name!r}; collect and fit for"
            f" {space.name!r}, or use the space the model was made for"
        )
    return model


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not str(path).endswith(".npz"):
        content = read_json(path)
        if not isinstance(content, dict):
            raise DataError(f"{path} is no latency model; 'nas-ext latency fit' makes one")
        arrays = content.pop("arrays", {})
        if not isinstance(arrays, dict):
            raise DataError(f"{path}: latency model is damaged (no arrays); fit it anew")
        try:
            return content, {name: np.asarray(values) for name, values in arrays.items()}
        except ValueError as error:
            raise DataError(f"{path}: latency model is damaged ({error}); fit it anew") from None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
    except FileNotFoundError:
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from None
    except DAMAGED_ARCHIVE as error:
        raise DataError(f"{path} is no latency model or is damaged ({error}); fit it anew") from None
    return header, arrays
