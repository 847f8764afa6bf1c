"""Search by several workers, each with its own copy of the strategy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from nas_core.search.strategies.base import Strategy
from nas_core.space import Architecture

Results = Mapping[Architecture, Mapping[str, Any] | None]
Openings = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class Proposal:
    """Next architecture of a worker, and records for the other workers."""

    architecture: Architecture | None
    """None if no new architecture is left."""
    opened: Mapping[int, tuple[str, ...]]
    """Generation (from 0) -> keys of other architectures with a result when it was proposed; only new records."""


class SharedSearch:
    """Search by several workers that share results; workers may join, stop and be replaced.

    Workers also record which results existed when a generation was proposed (``openings``), so that all copies of the
    strategy propose the same. Idle workers get spare architectures (:meth:`Strategy.spare`).

    Args:
        make: function that creates the strategy.
    """

    def __init__(self, make: Callable[[], Strategy]) -> None:
        self._make = make
        self.strategy = make()
        self._opened: dict[int, tuple[str, ...]] = {}
        self._reported: set[Architecture] = set()

    def next(
        self, results: Results, running: Collection[Architecture], openings: Openings, rng: np.random.Generator
    ) -> Proposal:
        """Return the next architecture of a worker.

        Args:
            results: architecture -> metrics, oldest first; None for a failure.
            running: architectures of other workers.
            openings: :attr:`Proposal.opened` of all workers.
            rng: new random generator for a spare architecture.
        """
        if any(tuple(openings.get(generation, others)) != others for generation, others in self._opened.items()):
            # another worker recorded a generation first
            self.strategy, self._opened, self._reported = self._make(), {}, set()
        if not self.strategy.generation:
            self._open(results, openings)
            self.strategy.start()
        if not self.strategy.barrier:  # proposals do not depend on results
            for finished in results.keys() - self._reported:
                self._tell(finished, results)
        architecture = self._free(results, running)
        while architecture is None and self._complete(results):
            self._open(results, openings)
            for member in self.strategy.waiting:
                self._tell(member, results)
            architecture = self._free(results, running)
        if architecture is None:
            architecture = self.strategy.spare(rng, [*running, *results])
        return Proposal(
            architecture,
            {generation: others for generation, others in self._opened.items() if generation not in openings},
        )

    def _free(self, results: Results, running: Collection[Architecture]) -> Architecture | None:
        batches = iter(lambda: self.strategy.ask(1), [])
        architectures = chain(self.strategy.waiting, chain.from_iterable(batches))
        return next(
            (
                architecture
                for architecture in architectures
                if architecture not in results and architecture not in running
            ),
            None,
        )

    def _complete(self, results: Results) -> bool:
        waiting = self.strategy.waiting
        return bool(waiting) and all(architecture in results for architecture in waiting)

    def _open(self, results: Results, openings: Openings) -> None:
        """Tell the strategy the results recorded for its generation; all if none are recorded."""
        generation, members = self.strategy.generation, set(self.strategy.waiting)
        others = {
            architecture.key: architecture
            for architecture in results
            if architecture not in members and architecture not in self._reported
        }
        self._opened[generation] = tuple(openings.get(generation, others))
        for key in self._opened[generation]:
            if key in others:
                self._tell(others[key], results)

    def _tell(self, architecture: Architecture, results: Results) -> None:
        self._reported.add(architecture)
        self.strategy.tell(architecture, results[architecture])
