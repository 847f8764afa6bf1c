"""What every accuracy model is: fit on graphs and numbers, predict with a spread, save, load."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor.saved import UNSEEN, SavedModel, checked_unseen
from nas_core.predictor.targets import checked_targets
from nas_core.settings import Configured

__all__ = ["UNSEEN", "AccuracyModel", "Array", "Progress"]

Array = NDArray[np.float64]
Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""

_log = logging.getLogger(__name__)


class AccuracyModel(Configured, SavedModel):
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

    called = "accuracy model"

    def __init__(self, *, seed: int = 0, device: str = "cpu", unseen: str = "error", **settings: Any) -> None:
        self.check_settings(settings)
        self.config: Any = self.config_class(**settings)
        self.seed, self.device, self.unseen = checked_seed(seed), usable_device(device), checked_unseen(unseen)
        self._known: frozenset[int] = frozenset()
        self._info: dict[str, Any] = {}

    @classmethod
    def made_of(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(seed=header["seed"], device=device, unseen=header["unseen"], **header["settings"])

    # -- what a member says --------------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        """Learn from graphs and finite targets ``(G,)``, at least two. What was learned replaces what was before at the
        very end, all at once.

        Args:
            progress: as of :meth:`fit`, as is ``checkpoint``; of use for models that learn step by step.
        """

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` for some graphs, and their standard deviation ``(B,)`` where the model has one."""

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

    def facts(self) -> dict[str, Any]:
        """What is worth keeping of how a fit computes, for :attr:`info`."""
        return {}

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
            progress: called for each step; on accelerators for some steps at a time, so that none waits.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, a target that is no number, or not one that can be learned.
            GraphError: a graph the model is not made for.
            ConfigError: training diverged, or the device does not compute in the precision.
        """
        data = Graphs.of(graphs)
        values = checked_targets(targets, len(data))
        known = frozenset(int(op) for op in np.unique(data.ops))
        info = {"graphs": len(data), "largest": int(data.sizes.max()), **self.facts()}
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
        """Facts of the training that are saved along: ``graphs``, ``largest``, of networks the ``precision``
        and the ``device`` by name, and what is added by ``info |= ..``."""
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
