"""What every accuracy model is: fit on graphs and numbers, predict with a spread, save, load."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.targets import checked_targets
from nas_core.settings import NoSettings, setting_types

__all__ = ["UNSEEN", "AccuracyModel", "Array", "Progress"]

UNSEEN = ("error", "warn", "ignore")
"""What may be done with an operation that no training graph has."""
Array = NDArray[np.float64]
Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""

_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise."""

_log = logging.getLogger(__name__)


class AccuracyModel(ABC):
    """A model that predicts one number per graph: an accuracy, or another one that graphs were given with.

    A member says :meth:`learn`, :meth:`estimate`, :meth:`tensors` and :meth:`restore`.

    Args:
        seed: of all that is drawn; equal seeds on one machine give equal models and files.
        device: where to compute, for models that use torch.
        unseen: what to do with an operation that no training graph has: ``error``, ``warn`` or ``ignore``.
        settings: fields of the model's ``config_class``.

    Raises:
        ConfigError, UnknownChoiceError: a setting that does not exist or cannot be.
    """

    name: ClassVar[str]
    """By which it is known in :data:`nas_core.predictor.ACCURACY_MODELS` and in files."""
    config_class: ClassVar[type] = NoSettings
    """A frozen dataclass of its settings."""

    def __init__(self, *, seed: int = 0, device: str = "cpu", unseen: str = "error", **settings: Any) -> None:
        self.check_settings(settings)
        self.config: Any = self.config_class(**settings)
        self.seed, self.device, self.unseen = checked_seed(seed), usable_device(device), _checked_unseen(unseen)
        self._known: frozenset[int] = frozenset()
        self._info: dict[str, Any] = {}

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        """Settings by name and their types."""
        return setting_types(cls.config_class)

    @classmethod
    def check_settings(cls, names: Iterable[str]) -> None:
        """Refuse settings that the model does not have.

        Raises:
            ConfigError: there is one; the message lists those it has.
        """
        known = cls.setting_types()
        if unknown := set(names) - known.keys():
            raise ConfigError(
                f"accuracy model {cls.name!r} has no setting {', '.join(sorted(unknown))}; it has:"
                f" {', '.join(known) or 'none'}"
            )

    # -- what a member says --------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        """Learn from graphs and finite targets ``(G,)``, at least two. What was learned replaces what was before at the
        very end, all at once.

        Args:
            progress, checkpoint: as of :meth:`fit`; of use for models that learn step by step.
        """

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` for some graphs, and their standard deviation ``(B,)`` where the model has one."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All arrays that were learned."""

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave and :meth:`header` holds. Contents that were altered may raise any error;
        one that only wrong predictions would show must."""

    def header(self) -> dict[str, Any]:
        """What was learned and is no array, for JSON."""
        return {}

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        """Make room for graphs of which only some will be learned; settings that this changed."""
        return {}

    @property
    def networks(self) -> int:
        """How many networks it trains step by step, one after the other; 0: it has no learning curve."""
        return 0

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    def remarks(self, graphs: Graphs) -> list[str]:
        """What is worth saying about a fit to these graphs."""
        return []

    # -- fitting and predicting ----------------------------------------------------------------------------------------

    def fit(
        self,
        graphs: Iterable[Graph] | Graphs,
        targets: ArrayLike,
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from graphs and targets ``(G,)``, anew whatever was fitted before, which stays until all is learned.
        The caller's random streams are left as they are.

        Args:
            progress: called after each step.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, a target that is no number, or not one that can be learned.
            GraphError: a graph the model is not made for.
            ConfigError: training diverged.
        """
        data = Graphs.of(graphs)
        values = checked_targets(targets, len(data))
        known = frozenset(int(op) for op in np.unique(data.ops))
        info = {"graphs": len(data), "largest": int(data.sizes.max())}
        self.learn(data, values, progress, None if checkpoint is None else Path(checkpoint))
        self._known, self._info = known, info
        return self

    @property
    def fitted(self) -> bool:
        """Whether it has learned."""
        return bool(self._known)

    @property
    def known(self) -> frozenset[int]:
        """Operations that training graphs have."""
        return self._known

    @property
    def info(self) -> dict[str, Any]:
        """Facts of the training that are saved along: ``graphs``, ``largest``, and what is added by ``info |= ..``."""
        return self._info

    @info.setter
    def info(self, info: Mapping[str, Any]) -> None:
        self.require_fitted("describe")
        self._info = dict(info)

    def require_fitted(self, use: str) -> None:
        """Insist that it has learned.

        Args:
            use: what it is needed for, for the message.

        Raises:
            ConfigError: it has not.
        """
        if not self.fitted:
            raise ConfigError(f"this predictor was not fitted; there is nothing to {use}: call fit, or load one")

    def predict(self, graphs: Iterable[Graph] | Graphs) -> Array:
        """Predictions ``(B,)`` in the units of the targets.

        Raises:
            ConfigError: nothing was fitted yet.
            GraphError: a graph is larger than the model was built for, or has an operation it does not know.
        """
        return self.predict_with_spread(graphs)[0]

    def predict_with_spread(self, graphs: Iterable[Graph] | Graphs) -> tuple[Array, Array]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)``; 0 where the model has none."""
        self.require_fitted("predict with")
        data = Graphs.of(graphs)
        if not len(data):
            return np.zeros(0), np.zeros(0)
        self._check(data)
        predicted, spread = self.estimate(data)
        return predicted, np.zeros(len(data)) if spread is None else spread

    def unseen_in(self, graphs: Graphs) -> dict[int, int]:
        """Operations that no training graph has, each with the first of these graphs that has it."""
        graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
        ops, first = np.unique(graphs.ops, return_index=True)
        found = zip(ops.tolist(), graph_of_node[first].tolist(), strict=True)
        return {op: graph for op, graph in found if op not in self.known}

    def _check(self, graphs: Graphs) -> None:
        if self.unseen == "ignore" or not (new := self.unseen_in(graphs)):
            return
        message = f"no training graph has operation {', '.join(map(str, new))}; it knows {sorted(self.known)}"
        if self.unseen == "error":
            first = min(new.values())
            raise GraphError(
                f"{message}, and graph {first} (from 0) of these has it: fit on graphs that have it, or allow it with"
                " unseen='warn'"
            )
        _log.warning("%s: predictions for such graphs are guesses", message)

    # -- files ---------------------------------------------------------------------------------------------------------

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
        return {**header, "known": sorted(self.known), "info": self.info}, self.tensors()

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
            _checked_unseen(unseen)

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
        made.restore(header, tensors)
        made._known, made._info = known, info
        if unseen is not None:
            made.unseen = unseen
        return made

    @classmethod
    def made_of(cls, header: Mapping[str, Any], device: str) -> Self:
        """A model with the settings of a header, which has learned nothing yet."""
        return cls(seed=header["seed"], device=device, unseen=header["unseen"], **header["settings"])


def _checked_unseen(unseen: str) -> str:
    if unseen not in UNSEEN:
        raise unknown_choice("treatment of unseen operations", unseen, UNSEEN)
    return unseen
