"""What every latency model by genes has in common: fitting, predicting, and a file without pickle.

A model predicts for one search space. It reads either integer rows of that space (per-layer genes) or, when fitted to a
table that holds only averages, the space's summary encoding; architectures and rows can be asked for in both cases.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, DataError, NasExtError, SpaceError, unknown_choice
from nas_core.latency.by_genes.model_file import read_model_file, write_model_file
from nas_core.latency.model import Floats, LatencyModel
from nas_core.latency.timing import checked_settings, reference_of
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict
from nas_core.space.slots import Rows

Inputs = NDArray[Any]
"""Rows ``(n, slots)`` or summary ``(n, choices)``, as the model's ``source`` says."""

SOURCES = ("rows", "summary")
LEAST_RECORDS = 10
"""Fewer measurements than this are refused."""

_BELOW_FASTEST = 3
"""Times that a prediction may be below the fastest measurement."""
_NORMAL_90 = 2 * 1.645
"""Standard deviations from the 5 % to the 95 % quantile of a normal distribution."""


class GeneLatencyModel(LatencyModel):
    """Architectures of one space -> milliseconds.

    Args:
        space: the one it predicts for.
        source: what it is fitted to: ``rows`` (the genes of each layer) or ``summary`` (averages, as HAT's tables).
        config: an object of its ``config_class``; None: the default settings.
    """

    by = "genes"
    saved_as: ClassVar[str | None] = None
    """Name in files, where another model reads them; None: its own."""

    def __init__(self, space: SearchSpace, source: str = "rows", config: Any = None) -> None:
        if source not in SOURCES:
            raise unknown_choice("source of a latency model", source, SOURCES)
        self.space = space
        self.source = source
        self.config = self.config_class() if config is None else config
        self.interval = (0.0, float("inf"))
        """5 % and 95 % quantile of measured / predicted, on rows left out of the fit."""
        self.floor_ms = 0.0
        """No prediction is below: measurements say nothing of what is much faster than the fastest of them."""
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
        self.floor_ms = float(latency_ms.min() / _BELOW_FASTEST)
        ratios = self.learn(inputs, latency_ms)
        low, high = np.quantile(ratios, (0.05, 0.95))
        self.interval = (float(low), float(high))
        self.fitted = True
        return self

    def predict_inputs(self, inputs: Inputs) -> Floats:
        """Milliseconds ``(n,)`` for inputs as they were given to :meth:`fit`."""
        if not self.fitted:
            raise ConfigError("this latency model is not fitted yet: call fit, or load one that is")
        return self.estimate(inputs)

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

    def predict_with_spread(self, architectures: Sequence[Architecture] | Architecture) -> tuple[Floats, Floats]:
        """Milliseconds ``(n,)`` and their standard deviation ``(n,)``, that of rows left out of the fit.

        Raises:
            ArchitectureError: one of them lies outside the model's space.
        """
        predicted, (low, high) = self.predict(architectures), self.interval
        return predicted, predicted * (high - low) / _NORMAL_90

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
    def learn(self, inputs: Inputs, latency_ms: Floats) -> Floats:
        """Learn from checked inputs; returns measured / predicted of rows that were left out, for the interval."""

    @abstractmethod
    def estimate(self, inputs: Inputs) -> Floats:
        """Milliseconds ``(n,)``, after :meth:`learn`."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned: values for JSON, and arrays."""

    @abstractmethod
    def restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what :meth:`state` gave. A value that is missing or does not fit may raise any error."""

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, or as NPZ when the name ends in .npz (smaller; of use for an MLP)."""
        settings, arrays = self.state()
        header = {
            "kind": self.saved_as or self.name,
            "source": self.source,
            "space": space_to_dict(self.space),
            "interval": list(self.interval),
            "floor_ms": self.floor_ms,
            "settings": settings,
            "info": self.info,
        }
        write_model_file(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path, space: SearchSpace | None = None) -> Self:
        """Read a model of this class; :func:`nas_core.latency.load_latency_model` reads one of any.

        Raises:
            DataError: the file is missing, no latency model, damaged, of a newer version, or of another model.
            SpaceError: the model was fitted for another space.
        """
        header, arrays = read_model_file(path)
        if header.get("kind") not in (cls.name, cls.saved_as or cls.name):
            raise DataError(f"{path} holds latency model {header.get('kind')!r}; expected {cls.name!r}")
        model = cls.restored(header, arrays, path)
        if space is not None:
            model.check_space(space, path)
        return model

    @classmethod
    def restored(cls, header: Mapping[str, Any], arrays: dict[str, NDArray[Any]], path: str | Path) -> Self:
        """The model of a file of that name that was read already.

        Raises:
            DataError: the file is damaged.
        """
        try:
            model = cls(space_from_dict(header["space"], str(path)), header["source"])
            model.restore(header["settings"], arrays)
            model.interval = (float(header["interval"][0]), float(header["interval"][1]))
            model.floor_ms = float(header["floor_ms"])
            model.info = _checked_info(header["info"])
        except NasExtError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise DataError(
                f"{path}: latency model is damaged ({type(error).__name__}: {error}); fit it anew"
            ) from None
        model.fitted = True
        return model

    def check_space(self, space: SearchSpace, path: str | Path) -> None:
        """Insist that the model, of that file, was fitted for that space.

        Raises:
            SpaceError: it was fitted for another.
        """
        if space != self.space:
            raise SpaceError(
                f"{path} predicts for space {self.space.name!r}, which differs from {space.name!r}; collect and fit for"
                f" {space.name!r}, or use the space the model was made for"
            )


def _checked_info(given: Mapping[str, Any]) -> dict[str, Any]:
    """The ``info`` of a file, as far as others compute with it; an error names what is lacking or garbled."""
    info = dict(given)
    settings = checked_settings(info.get("settings", {}))
    if (reference_ms := info.get("reference_ms")) is not None:
        reference_of(reference_ms)
    elif settings.get("timing"):  # a published table has neither
        raise KeyError("reference_ms")
    return info
