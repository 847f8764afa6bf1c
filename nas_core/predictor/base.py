"""What every accuracy model is: fit on graphs and numbers, predict with a spread, save, load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.graph import Graph, Graphs, common_ends, topological, with_ends
from nas_core.predictor.inputs.known import missing_ends
from nas_core.predictor.inputs.proxies import ProxyInputs, Scores
from nas_core.predictor.predicting import Array, Predicting
from nas_core.predictor.saved import UNSEEN, checked_unseen
from nas_core.predictor.targets import checked_targets
from nas_core.predictor.training.bar import Progress, training_bar
from nas_core.settings import Configured

__all__ = ["UNSEEN", "AccuracyModel", "Array", "Progress"]


class AccuracyModel(Configured, Predicting):
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
        self._ends: tuple[int, int] | None = None
        self._common_ends: tuple[int, int] | None = None
        self._proxies: ProxyInputs | None = None
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

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        """Make room for graphs of which only some will be learned; settings that this changed."""
        return {}

    def make_room(self, nodes: int) -> None:
        """Be ready for so many nodes and operations more than a person's limits allow: the ends of graphs."""

    @property
    def networks(self) -> int:
        """How many networks it trains step by step, one after the other; 0: it has no learning curve."""
        return 0

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
        proxies: Scores | None = None,
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from graphs and targets ``(G,)``, anew whatever was fitted before, which stays until all is learned.
        The caller's random streams are left as they are.

        Args:
            proxies: scores of zero-cost proxies (or other numbers of whole networks) as further inputs: ``{"nwot":
                (G,), ..}``, or for each graph what :func:`nas_core.proxies.zero_cost` gives. To predict takes them too.
            progress: called for each step; on accelerators for some steps at a time, so that none waits. True: a bar
                is drawn, as the command line does.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, a target that is no number, or not one that can be learned.
            GraphError: a graph the model is not made for.
            ConfigError: training diverged, or the device does not compute in the precision.
        """
        data = topological(Graphs.of(graphs))
        values = checked_targets(targets, len(data))
        inputs = None if proxies is None else ProxyInputs.fit(proxies, len(data))
        data = data if inputs is None else inputs.put(data, proxies)
        known = frozenset(int(op) for op in np.unique(data.ops))
        info = {"graphs": len(data), "largest": int(data.sizes.max()), **self.facts()}
        common = common_ends(data)
        ends = missing_ends(data, common)
        with training_bar() if progress is True else nullcontext(progress or None) as told:
            whole = data if ends is None else with_ends(data, *ends)
            self.make_room(0 if ends is None else len(ends))
            self.learn(whole, values, told, None if checkpoint is None else Path(checkpoint))
        self._known, self._info, self._proxies = known, info, inputs
        self._ends, self._common_ends = ends, common
        return self

    @property
    def proxies(self) -> tuple[str, ...]:
        """Names of the zero-cost proxies that it reads; none where it was fitted without."""
        return () if self._proxies is None else self._proxies.names

    @property
    def info(self) -> dict[str, Any]:
        """Facts of the training that are saved along: ``graphs``, ``largest``, of networks the ``precision``
        and the ``device`` by name, and what is added by ``info |= ..``."""
        return self._info

    @info.setter
    def info(self, info: Mapping[str, Any]) -> None:
        self.require_fitted("describe")
        self._info = dict(info)
