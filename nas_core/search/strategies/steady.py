"""A strategy behind an engine that never waits: something to evaluate whenever a worker is idle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

Results = Iterable[tuple[Architecture, Mapping[str, Any] | None]]


class SteadySearch:
    """Hands out one architecture at a time, each once, until the strategy has finished; takes results in any order.

    Engines such as NNI take "nothing now" for the end of the search. Where the strategy waits for the rest of a
    generation, :meth:`next` therefore gives spare architectures (:meth:`Strategy.spare`) until its slowest member is
    told; with generations much larger than the number of workers they are few. They do not change what the strategy
    asks: with one worker there are none, and for a strategy that learns from its own members alone (HAT's evolution)
    the same results lead to the same members with any number.

    Args:
        strategy: fresh, or with its state loaded.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.spares = 0
        """Spare architectures handed out."""
        self._rng = np.random.default_rng([strategy.seed, 1])
        self._ready: deque[Architecture] = deque()
        self._out: dict[Architecture, None] = {}
        self.told: set[Architecture] = set()
        """Architectures whose results were taken."""

    @property
    def running(self) -> list[Architecture]:
        """Handed out and not told, oldest first."""
        return list(self._out)

    def next(self) -> Architecture | None:
        """The next architecture to evaluate; None when the search is over or nothing new is left.

        Raises:
            ConstraintError: nothing meets the limits.
        """
        architecture = self._ask()
        if architecture is None and not self.strategy.asked_all:
            architecture = self.strategy.spare(self._rng, self._out)
            self.spares += architecture is not None
        if architecture is not None:
            self._out[architecture] = None
        return architecture

    def _ask(self) -> Architecture | None:
        """What the strategy asks for, spares excepted whose results are under way."""
        while True:
            asked = [self._ready.popleft()] if self._ready else self.strategy.ask(1)
            if not asked:
                return None
            if asked[0] not in self._out:
                return asked[0]

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> bool:
        """A result, None for a failure; whether it is news: of a second one for the same architecture nothing is taken.

        Raises:
            ArchitectureError: it lies outside the space.
        """
        architecture = self.strategy.space.validate(architecture)
        if architecture in self.told:
            return False
        self.strategy.tell(architecture, metrics)
        self.told.add(architecture)
        self._out.pop(architecture, None)
        return True

    def recall(self, architecture: Architecture) -> None:
        """Hand it out again, next, if it was handed out and not told."""
        if self._out.pop(architecture, 0) is None:
            self._ready.appendleft(architecture)

    def load(self, results: Results) -> None:
        """Results of an earlier run, before anything is handed out: the strategy goes through its own again in the
        order in which it asks, so that a search that was cut off continues as it would have gone on. All others
        (spares of that run, results of another search) are told afterwards; they are never asked for.

        Raises:
            ArchitectureError, ConstraintError: see :meth:`tell` and :meth:`next`.
        """
        known = {self.strategy.space.validate(architecture): metrics for architecture, metrics in results}
        if not self._out:
            while (architecture := self._ask()) is not None:
                if architecture not in known:
                    self._ready.appendleft(architecture)
                    break
                self.tell(architecture, known[architecture])
        for architecture, metrics in known.items():
            self.tell(architecture, metrics)
            if architecture in self._ready:
                self._ready.remove(architecture)
