"""Search that always has an architecture for an idle worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

Results = Iterable[tuple[Architecture, Mapping[str, Any] | None]]


class SteadySearch:
    """Search that returns one architecture at a time until the strategy has finished.

    While a generation awaits results, :meth:`next` returns spare architectures (:meth:`Strategy.spare`), because
    engines such as NNI end a search that returns none.

    Args:
        strategy: new strategy.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.spares = 0
        self._rng = np.random.default_rng([strategy.seed, 1])
        self._ready: deque[Architecture] = deque()
        self._out: dict[Architecture, None] = {}
        self.evaluated: set[Architecture] = set()

    @property
    def running(self) -> list[Architecture]:
        return list(self._out)

    def next(self) -> Architecture | None:
        """Return the next architecture to evaluate; None at the end of the search."""
        architecture = self._ask()
        if architecture is None and not self.strategy.asked_all:
            architecture = self.strategy.spare(self._rng, self._out)
            self.spares += architecture is not None
        if architecture is not None:
            self._out[architecture] = None
        return architecture

    def _ask(self) -> Architecture | None:
        while True:
            proposals = [self._ready.popleft()] if self._ready else self.strategy.ask(1)
            if not proposals:
                return None
            if proposals[0] not in self._out and proposals[0] not in self.evaluated:
                return proposals[0]

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> bool:
        """Record the metrics of an architecture, None for a failure; return False if it already has a result."""
        architecture = self.strategy.space.validate(architecture)
        if architecture in self.evaluated:
            return False
        self.strategy.tell(architecture, metrics)
        self.evaluated.add(architecture)
        self._out.pop(architecture, None)
        return True

    def recall(self, architecture: Architecture) -> None:
        """Let the next call of :meth:`next` return a running architecture again."""
        if self._out.pop(architecture, 0) is None:
            self._ready.appendleft(architecture)

    def load(self, results: Results) -> None:
        """Add results of an earlier run, or of other trials; after the former the search continues identically."""
        metrics_of = {self.strategy.space.validate(architecture): metrics for architecture, metrics in results}
        if not self._out:
            self.strategy.replay(metrics_of)
            self.evaluated |= metrics_of.keys()
            return
        for architecture, metrics in metrics_of.items():  # a replay would propose running architectures again
            self.tell(architecture, metrics)
