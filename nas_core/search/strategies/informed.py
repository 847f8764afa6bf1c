"""What strategies share that learn from all results, whoever asked for them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nas_core.search.strategies.base import Strategy
from nas_core.space.slots import Rows


class InformedStrategy(Strategy):
    """A strategy that fits a model to every successful result, and fills its proposals up with children of the best."""

    def _evaluated(self) -> tuple[Rows, NDArray[np.float64]]:
        """All successful evaluations, in an order that does not depend on who was told first."""
        others = sorted(key for key in self._scores if key not in self._members)
        keys = [key for key in (*self._members, *others) if math.isfinite(self._scores.get(key, math.inf))]
        return self._rows(keys), np.array([self._scores[key] for key in keys])

    def _best_first(self) -> list[bytes]:
        """All successful evaluations by their scores; among equals the order does not depend on who was told first."""
        good = (key for key, score in self._scores.items() if math.isfinite(score))
        return sorted(good, key=lambda key: (self._scores[key], key))

    def _with_children(self, chosen: Rows, count: int, taken: set[bytes], parents: int, mutation_prob: float) -> Rows:
        """Those chosen, filled up to a count with children of the best evaluated architectures and, if need be, random
        ones.

        Args:
            taken: what is not proposed, those chosen among it; it grows by what is added.
            parents: so many of the best have children.
            mutation_prob: with which each gene of a child is replaced.
        """
        best = self._rows(self._best_first()[:parents])

        def mutated(k: int) -> Rows:
            return self.space.mutate_rows(best[self.rng.integers(len(best), size=k)], mutation_prob, self.rng)

        children = self.proposals.take(mutated, count - len(chosen), taken)
        missing = count - len(chosen) - len(children)
        others = self.proposals.take(lambda k: self.space.sample_rows(self.rng, k), missing, taken)
        return np.concatenate([chosen, children, others])
