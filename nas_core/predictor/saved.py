"""Predictors as files: what every accuracy model does to be saved and opened again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor

from nas_core.device import usable_device
from nas_core.errors import DataError, NasExtError, unknown_choice
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.inputs.proxies import ProxyInputs

__all__ = ["UNSEEN", "SavedModel", "checked_unseen"]

UNSEEN = ("error", "warn", "ignore")
"""What may be done with an operation that no training graph has."""
_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise."""


class SavedModel(ABC):
    """The part of an accuracy model that makes a file of it, and it of a file."""

    name: ClassVar[str]
    """By which it is known in :data:`nas_core.predictor.ACCURACY_MODELS` and in files."""
    config: Any
    seed: int
    unseen: str
    _known: frozenset[int]
    """Operations that training graphs have; none before it has learned."""
    _info: dict[str, Any]
    """Facts of the training."""
    _ends: tuple[int, int] | None
    """Operations of the input and the output that are put around each graph, where the training graphs had none."""
    _common_ends: tuple[int, int] | None
    """Operations of the input and the output that training graphs had."""
    _proxies: ProxyInputs | None
    """Zero-cost proxies that it reads."""

    @abstractmethod
    def require_fitted(self, use: str) -> None:
        """Insist that it has learned, see :meth:`AccuracyModel.require_fitted`."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All arrays that were learned."""

    def header(self) -> dict[str, Any]:
        """What was learned and is no array, for JSON."""
        return {}

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave and :meth:`header` holds. Contents that were altered may raise any error;
        one that only wrong predictions would show must."""

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file: arrays, and all else as JSON in its header.

        Raises:
            ConfigError: nothing was fitted yet.
            DataError: a weight is no finite number.
            NasExtError: the file cannot be written; a former one is kept.
        """
        write_artifact(path, self.name, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Header and tensors of the file, for files of several predictors.

        Raises:
            ConfigError: nothing was fitted yet. DataError: a weight is no finite number.
        """
        self.require_fitted("save")
        settings = asdict(self.config)
        header = {"seed": self.seed, "unseen": self.unseen, "settings": settings, **self.header()}
        return {**header, **self._common()}, self.tensors()

    def _common(self) -> dict[str, Any]:
        """What the header of every accuracy model has."""
        proxies = {} if self._proxies is None else {"proxies": self._proxies.to_json()}
        return {
            "known": sorted(self._known), "info": self._info, "ends": self._ends, "common_ends": self._common_ends,
            **proxies,
        }  # fmt: skip

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", unseen: str | None = None) -> Self:
        """Read what :meth:`save` of this model wrote; :func:`nas_core.predictor.load_accuracy_model` reads any model's.

        Args:
            unseen: as of the class; default: as it was saved.

        Raises:
            DataError: the file is missing, truncated, altered, of a newer version, or something else.
            ConfigError, UnknownChoiceError: an argument that cannot be.
        """
        cls.check_loading(device, unseen)
        return cls.opened(path, *read_artifact(path, cls.name), device, unseen)

    @staticmethod
    def check_loading(device: str, unseen: str | None) -> None:
        """Refuse arguments of :meth:`load` that cannot be, before a file is read.

        Raises:
            ConfigError, UnknownChoiceError: there is one.
        """
        usable_device(device)
        if unseen is not None:
            checked_unseen(unseen)

    @classmethod
    def opened(
        cls, path: str | Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str, unseen: str | None
    ) -> Self:
        """The model of a file of that name that was read already.

        Raises:
            DataError: the file is damaged.
        """
        try:
            return cls.restored(header, tensors, device, unseen)
        except (*_ALTERED, NasExtError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{path}: the predictor is damaged ({reason[:120]}); fit it anew") from None

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str = "cpu", unseen: str | None = None
    ) -> Self:
        """The model of such a header and tensors, the inverse of :meth:`contents`; arguments as of :meth:`load`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        made = cls.made_of(header, device)
        known, info = frozenset(int(op) for op in header["known"]), dict(header["info"])
        if not known or min(known) < 0 or type(info["graphs"]) is not int or info["graphs"] < 1:
            raise DataError(f"known operations {sorted(known)[:9]} of {info['graphs']!r} graphs")
        ends, common = (_checked_ends(header[name]) for name in ("ends", "common_ends"))
        made.restore(header, tensors)
        made._known, made._info = known, info
        made._ends, made._common_ends = ends, common
        made._proxies = ProxyInputs.from_json(header["proxies"]) if "proxies" in header else None
        if unseen is not None:
            made.unseen = unseen
        return made

    @classmethod
    @abstractmethod
    def made_of(cls, header: Mapping[str, Any], device: str) -> Self:
        """A model with the settings of a header, which has learned nothing yet."""


def checked_unseen(unseen: str) -> str:
    """That treatment of unseen operations, if there is such.

    Raises:
        UnknownChoiceError: there is none.
    """
    if unseen not in UNSEEN:
        raise unknown_choice("treatment of unseen operations", unseen, UNSEEN)
    return unseen


def _checked_ends(ends: Any) -> tuple[int, int] | None:
    if ends is None:
        return None
    if len(ends) != 2 or any(type(op) is not int or not 0 <= op < 2**15 for op in ends):
        raise DataError(f"operations {ends} at the ends of graphs")
    return ends[0], ends[1]
