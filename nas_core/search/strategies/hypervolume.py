"""Expected hypervolume improvement of two metrics.

Emmerich, Deutz and Klinkenberg, "Hypervolume-based Expected Improvement: Monotonicity Properties and Exact
Computation", CEC 2011; Yang et al., "Efficient Computation of Expected Hypervolume Improvement Using Box Decomposition
Algorithms", Journal of Global Optimization 75, 2019 (a sum over strips); Ginsbourger et al., "Kriging Is Well-Suited to
Parallelize Optimization", 2010 (batches: an earlier member of a batch counts as evaluated, with its predicted metrics).

Each metric has a :class:`~nas_core.search.strategies.gaussian_process.GaussianProcess` on normal quantiles of its
ranks, and the hypervolume is that of the quantiles: it does not depend on the metrics' units.

Letters: n evaluated architectures, N candidates, P points of a front.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.search.strategies.additive import fast_proposals
from nas_core.search.strategies.gaussian_process import GaussianProcess, Posterior, fit_subset, normal_scores
from nas_core.search.strategies.multi_objective import best_first
from nas_core.search.strategies.objectives import MultiObjectiveStrategy, fronts
from nas_core.search.strategies.proposals import BATCH, Proposals, row_keys
from nas_core.space.slots import Rows

Numbers = NDArray[np.float64]

SHORTLIST = 500
"""Number of candidates with the largest expected improvement among which a batch is chosen."""
ROUNDS, PARENTS = 9, 50
"""Number of times that candidates of a large space are mutated, and number of the best ones that are mutated."""
GROWTH = 10
"""Number of results per architecture of a batch: with fewer results, batches are smaller than ``per_round``."""
MARGIN = 0.1
"""Distance of the reference point from the worst results, in standard deviations."""

_RANGES = {
    "samples": Range(2),
    "evaluations": Range(2),
    "per_round": Range(1),
    "candidates": Range(10),
    "mutation_prob": Range(0, 1, exclude=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class HypervolumeConfig:
    """Settings of the search by expected hypervolume improvement."""

    evaluations: int = 300
    """Largest number of architectures."""
    samples: int = 10
    """Random architectures before the first model."""
    per_round: int = 5
    """Architectures between two fits of the models."""
    candidates: int = 2000
    """Architectures that are scored in a space too large to score all of them."""
    mutation_prob: float = 0.2
    """Probability with which mutation replaces a gene of a parent among the candidates."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)


class HypervolumeSearch(MultiObjectiveStrategy):
    """Search for the front of two metrics by expected hypervolume improvement, for few evaluations.

    Limits are checked before a candidate is scored. In a space of at most
    :data:`~nas_core.search.strategies.proposals.ENUMERATED` architectures all feasible ones are candidates, else random
    ones and mutations of the front and of the best candidates.
    """

    config: HypervolumeConfig
    name: ClassVar[str] = "hypervolume"
    purpose: ClassVar[str] = "the front of two metrics, by few evaluations"
    config_class: ClassVar[type[Any]] = HypervolumeConfig
    max_objectives: ClassVar[int | None] = 2
    budget_formula: ClassVar[str] = "{evaluations}"

    @property
    def budget(self) -> int:
        return self.config.evaluations

    @cached_property
    def _processes(self) -> list[GaussianProcess]:
        return [GaussianProcess(self.space) for _ in self.objectives]

    def _propose(self) -> Rows | None:
        evaluated = set(self._members) | set(self._scores)
        missing = self.config.evaluations - len(self._members)
        if missing <= 0:
            return None
        if not self.generation:
            return self.proposals.initial(self.rng, min(missing, self.config.samples), set())
        rows, _ = self._evaluated()
        count = min(missing, self.config.per_round, max(1, len(rows) // GROWTH))
        values, outside = self._vectors_of(row_keys(rows))
        if len(rows) < 2 or not np.ptp(values, 0).all():  # too few results to fit
            return self.proposals.initial(self.rng, count, evaluated)
        selected = fit_subset(best_first(values, outside))
        rows, values, outside = rows[selected], values[selected], outside[selected]
        for process, column in zip(self._processes, values.T, strict=True):
            process.fit(rows, column)
        quantiles = np.column_stack([normal_scores(column) for column in values.T])
        front = Front(quantiles[outside == 0], quantiles.max(0) + MARGIN)
        parents = rows[fronts(values, outside) == 0]
        candidates = self._candidates(fast_proposals(self.proposals, rows), parents, front, count, evaluated)

        def mutated(k: int) -> Rows:
            return self._mutated(parents, k, self.config.mutation_prob)

        batch = self.space.slots.empty()
        for draw in (lambda k: candidates[:k], mutated, lambda k: self.space.sample_rows(self.rng, k)):
            batch = np.concatenate([batch, self.proposals.take(draw, count - len(batch), evaluated)])
        return batch

    def _candidates(self, fast: Proposals, parents: Rows, front: Front, count: int, evaluated: set[bytes]) -> Rows:
        """Return new candidates; the first ``count`` improve the front most together, then each alone."""
        rows = self.proposals.enumerated
        if len(rows):
            scores = self._scores_of(rows, front)
            scores = scores if fast is self.proposals else np.where(fast.feasible(rows), scores, -1.0)
        else:
            rows, scores = self._evolve_candidates(fast, parents, front)
        order = np.argsort(-scores, kind="stable")[: len(evaluated) + BATCH]
        order = order[[key not in evaluated for key in row_keys(rows[order])] & (scores[order] >= 0)]
        shortlist = rows[order[:SHORTLIST]]
        return np.concatenate([shortlist[self._select_batch(shortlist, front, count)], rows[order]])

    def _evolve_candidates(self, fast: Proposals, parents: Rows, front: Front) -> tuple[Rows, Numbers]:
        """Return candidates of a large space and their scores."""
        share, prob = max(1, self.config.candidates // (ROUNDS + 1)), self.config.mutation_prob
        seen: set[bytes] = set()
        rows = fast.take(lambda k: self.space.sample_rows(self.rng, k), share, seen)
        scores = self._scores_of(rows, front)
        for _ in range(ROUNDS):

            def mutated(k: int, parents: Rows = parents) -> Rows:
                return self._mutated(parents, k, prob)

            new = fast.take(mutated, share, seen)
            rows, scores = np.concatenate([rows, new]), np.concatenate([scores, self._scores_of(new, front)])
            parents = rows[np.argsort(-scores, kind="stable")[:PARENTS]] if len(rows) else parents
        return rows, scores

    def _scores_of(self, rows: Rows, front: Front) -> Numbers:
        """Return the expected improvement ``(N,)`` as a share of the largest."""
        return _improvement(front, [process.posterior(rows) for process in self._processes])

    def _select_batch(self, rows: Rows, front: Front, count: int) -> list[int]:
        posteriors = [Posterior(process, process.scaled(rows)) for process in self._processes]
        selected: list[int] = []
        for _ in range(min(count, len(rows))):
            scores = _improvement(front, posteriors)
            scores[selected] = -1
            selected.append(int(np.argmax(scores)))
            front = front.with_point(np.array([posterior.mean[selected[-1]] for posterior in posteriors]))
            for posterior in posteriors:
                posterior.assume_mean(selected[-1])
        return selected


class Front:
    """Non-dominated points of two minimised metrics.

    Args:
        points: ``(n, 2)``; dominated ones and those beyond the reference point have no effect.
        reference: point ``(2,)`` that bounds the hypervolume.
    """

    def __init__(self, points: Numbers, reference: Numbers) -> None:
        self.reference = reference
        points = points[(points < reference).all(1)]
        points = points[np.lexsort(points.T[::-1])]
        lowest = np.minimum.accumulate(np.concatenate([reference[1:], points[:, 1]]))
        self.points = points[points[:, 1] < lowest[:-1]]
        """``(P, 2)``, by the first metric."""

    def with_point(self, point: Numbers) -> Front:
        return Front(np.concatenate([self.points, point[None]]), self.reference)

    def expected_improvement(self, means: Numbers, deviations: Numbers) -> Numbers:
        """Return the expected growth of the hypervolume ``(N,)`` by independent normal results.

        The area that a result adds is a sum over the strips between neighbouring points: width times height, each the
        positive part of a difference. The two factors are independent.

        Args:
            means, deviations: ``(N, 2)``.
        """
        edges = np.append(self.points[:, 0], self.reference[0])
        heights = np.append(self.reference[1], self.points[:, 1])
        widths = np.diff(_expected_shortfall(edges, means[:, :1], deviations[:, :1]), axis=1, prepend=0)
        improvement: Numbers = (widths * _expected_shortfall(heights, means[:, 1:], deviations[:, 1:])).sum(1)
        return improvement


def _expected_shortfall(levels: Numbers, mean: Numbers, deviation: Numbers) -> Numbers:
    """Return E[max(level - y, 0)] ``(N, P + 1)`` of normal y."""
    from scipy.special import ndtr

    standard = (levels - mean) / deviation
    density = np.exp(-0.5 * standard**2) / np.sqrt(2 * np.pi)
    shortfall: Numbers = deviation * (standard * ndtr(standard) + density)
    return shortfall


def _improvement(front: Front, posteriors: list[Posterior]) -> Numbers:
    means = np.column_stack([posterior.mean for posterior in posteriors])
    deviations = np.column_stack([posterior.deviation for posterior in posteriors])
    improvement = front.expected_improvement(means, deviations)
    largest = improvement.max(initial=0)
    return np.round(improvement / largest, 5) if largest > 0 else improvement  # equal on all machines
