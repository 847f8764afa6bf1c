"""A strategy of which many workers have a copy each: from the same results, all of them come to the same search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

Results = Mapping[Architecture, Mapping[str, Any] | None]
Openings = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Proposal:
    """What a worker should evaluate next, and what it has to put on record for the others."""

    architecture: Architecture | None
    """None where nothing new is left."""
    opened: Mapping[int, tuple[str, ...]]
    """Generation (0 is the first) -> keys of the other architectures whose results were known when it was proposed: of
    those generations of this worker's search that are not on record."""


class SharedSearch:
    """Proposes what no worker has, by a strategy that goes through the results that all workers have in common.

    Nothing but the results, and for each generation which results beside those of its own members were known when it
    was proposed (``openings``), decides the course of the search. So a worker can join, be killed and be replaced at
    any time, and any number of them asks for what one alone would ask for. While the rest of a generation is under
    way, idle workers get spare architectures (:meth:`Strategy.spare`), as they do once the search is over.

    Args:
        made: makes the strategy, fresh, always the same one.
    """

    def __init__(self, made: Callable[[], Strategy]) -> None:
        self._made = made
        self.strategy = made()
        self._opened: dict[int, tuple[str, ...]] = {}
        self._told: set[Architecture] = set()

    def next(
        self, results: Results, running: Collection[Architecture], openings: Openings, rng: np.random.Generator
    ) -> Proposal:
        """The next architecture for the worker that asks.

        Args:
            results: every known result, oldest first, None for a failure.
            running: what other workers evaluate.
            openings: what is on record of generations.
            rng: for a spare architecture; another one for each call.

        Raises:
            ConstraintError: nothing meets the limits.
        """
        if any(tuple(openings.get(generation, others)) != others for generation, others in self._opened.items()):
            # Another worker was first to propose one of them.
            self.strategy, self._opened, self._told = self._made(), {}, set()
        if not self.strategy.generation:
            self._open(results, openings)
            self.strategy.start()
        if not self.strategy.barrier:  # its proposals do not depend on results, whenever they are told
            for one in results.keys() - self._told:
                self._tell(one, results)
        architecture = self._free(results, running)
        while architecture is None and self._complete(results):
            self._open(results, openings)
            for one in self.strategy.waiting:
                self._tell(one, results)
            architecture = self._free(results, running)
        if architecture is None:
            architecture = self.strategy.spare(rng, [*running, *results])
        return Proposal(architecture, {at: others for at, others in self._opened.items() if at not in openings})

    def _free(self, results: Results, running: Collection[Architecture]) -> Architecture | None:
        """The first that the strategy asks for and nobody has; what a lost worker had is such again."""
        for one in self.strategy.waiting:
            if one not in results and one not in running:
                return one
        while asked := self.strategy.ask(1):
            if asked[0] not in results and asked[0] not in running:
                return asked[0]
        return None

    def _complete(self, results: Results) -> bool:
        """Whether all results of the generation are there, so that the next one can be proposed."""
        waiting = self.strategy.waiting
        return bool(waiting) and all(one in results for one in waiting)

    def _open(self, results: Results, openings: Openings) -> None:
        """Tell the results beside those of the generation's members: those on record, or all that there are."""
        generation, members = self.strategy.generation, set(self.strategy.waiting)
        others = {one.key: one for one in results if one not in members and one not in self._told}
        self._opened[generation] = tuple(openings.get(generation, others))
        for key in self._opened[generation]:
            if key in others:
                self._tell(others[key], results)

    def _tell(self, architecture: Architecture, results: Results) -> None:
        self._told.add(architecture)
        self.strategy.tell(architecture, results[architecture])
