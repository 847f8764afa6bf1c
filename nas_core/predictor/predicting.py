"""Predictions of a fitted accuracy model: what graphs must have, what comes back, in which units."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError
from nas_core.graph import Graph, GraphError, Graphs, lacking_ends, topological, with_ends
from nas_core.predictor.inputs.known import MOST
from nas_core.predictor.inputs.proxies import Scores
from nas_core.predictor.saved import SavedModel
from nas_core.predictor.targets import checked_levels

__all__ = ["Array", "Predicting"]

Array = NDArray[np.float64]
WITH_SPREAD = (
    "those that have one are recipes best and statistics, models statistics, gaussian-process and boosted-trees, and"
    " any recipe with members=2 or more"
)

_log = logging.getLogger(__name__)


class Predicting(SavedModel):
    """The part of an accuracy model that predicts."""

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` for some graphs, and their standard deviation ``(B,)`` where the model has one."""

    def estimate_quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        """Quantiles ``(L, B)`` at levels ``(L,)``, where the model has a spread; by default those of a normal
        distribution."""
        mean, spread = self.estimate(graphs)
        return None if spread is None else mean + ndtri(levels)[:, None] * spread

    @property
    def fitted(self) -> bool:
        """Whether it has learned."""
        return bool(self._known)

    @property
    def ready(self) -> bool:
        """Whether it predicts: it has learned, or knows something before."""
        return self.fitted

    @property
    def known(self) -> frozenset[int]:
        """Operations that training graphs have."""
        return self._known

    @property
    def has_spread(self) -> bool:
        """Whether predictions have a standard deviation, as far as that is known before a fit."""
        return True

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    def require_spread(self) -> None:
        """Insist that its predictions have a standard deviation, before work begins.

        Raises:
            ConfigError: they have none.
        """
        if not self.has_spread:
            self._there(None)

    def require_fitted(self, use: str) -> None:
        """Insist that it has learned.

        Args:
            use: what it is needed for, for the message.

        Raises:
            ConfigError: it has not.
        """
        if not self.fitted:
            raise ConfigError(f"this predictor was not fitted; there is nothing to {use}: call fit, or load one")

    def predict(self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None) -> Array:
        """Predictions ``(B,)`` in the units of the targets.

        Args:
            proxies: scores as of :meth:`fit`, where it was fitted with them; others than its own are passed over.

        Raises:
            ConfigError: nothing was fitted yet, or proxies are missing.
            GraphError: a graph is larger than the model was built for, or has an operation it does not know.
        """
        return self.predictions(graphs, proxies=proxies)[0]

    def predict_with_spread(
        self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None
    ) -> tuple[Array, Array]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)``, in the units of the targets; arguments as of
        :meth:`predict`.

        Raises:
            ConfigError: the model has no standard deviation; others as of :meth:`predict`.
        """
        predicted, spread = self.predictions(graphs, proxies=proxies)
        return predicted, self._there(spread)

    def predict_quantiles(
        self, graphs: Iterable[Graph] | Graphs, levels: Sequence[float], *, proxies: Scores | None = None
    ) -> Array:
        """Values ``(L, B)`` below which that of a graph lies with these probabilities, in the units of the targets.

        Example:
            >>> low, median, high = predictor.predict_quantiles(graphs, [0.1, 0.5, 0.9])

        Args:
            levels: ``(L,)`` probabilities between 0 and 1. proxies: as of :meth:`predict`.

        Raises:
            ConfigError: a level that is none, or the model has no spread; others as of :meth:`predict`.
        """
        wanted = checked_levels(levels)
        data = self._read(graphs, proxies)
        if data is None:
            return np.zeros((len(wanted), 0))
        return self._there(self.estimate_quantiles(self._with_ends(data), wanted))

    def predictions(
        self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None
    ) -> tuple[Array, Array | None]:
        """Predict as :meth:`predict_with_spread` does, with None in place of a spread that the model does not have."""
        data = self._read(graphs, proxies)
        return (np.zeros(0), np.zeros(0)) if data is None else self.estimate(self._with_ends(data))

    def _read(self, graphs: Iterable[Graph] | Graphs, proxies: Scores | None) -> Graphs | None:
        """Graphs with all that was learned from, but their ends; None: there are none."""
        if not self.ready:
            self.require_fitted("predict with")
        data = topological(Graphs.of(graphs))
        if not len(data):
            return None
        if self.fitted:
            self._check(data)
            if self._ends is None and lacking_ends(data, self._common_ends).mean() > MOST:
                _log.warning(
                    "most of these graphs have several nodes that nothing feeds, or several that feed nothing, where"
                    " most training graphs had one input and one output: predictions are guesses"
                )
        return data if self._proxies is None else self._proxies.put(data, proxies)

    def _with_ends(self, graphs: Graphs) -> Graphs:
        if self._ends is None:
            return graphs
        taken = np.isin(graphs.ops, self._ends)  # by operations that no training graph has
        if taken.any():
            graphs = replace(graphs, ops=np.where(taken, max(self._ends) + 1, graphs.ops).astype(graphs.ops.dtype))
        return with_ends(graphs, *self._ends)

    def _there(self, spread: Array | None) -> Array:
        if spread is None:
            raise ConfigError(
                f"{self.title!r} has no spread{'' if self.fitted else ' before a fit'}: nothing judged how far off it"
                f" is; {WITH_SPREAD}"
            )
        return spread

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
