"""RankNAS: learn a ranking from few evaluations, search in the ranking, evaluate the best architectures.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021; Liu et al., "Neural
Architecture Search on Efficient Transformers and Beyond", 2022, 3.1.2. Differences:

- The importance of a gene is |Kendall's tau| with the metric and with each limited metric. Unimportant genes get the
  most frequent options of the best-ranked random architectures.
- The ranking is learned ``rounds`` times, each time from all evaluations.
- By default the ranker is a Gaussian process with confidence bounds, and no gene is pruned. In a space of at most
  :data:`~nas_core.search.strategies.proposals.ENUMERATED` architectures it scores all feasible ones.
- A prior selects one half of the first architectures, and is the mean of the Gaussian process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.search.constraints import Constraint, Limits, PredictRows, cached_rows
from nas_core.search.strategies.additive import fast_proposals
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.gaussian_process import GaussianProcessRanker
from nas_core.search.strategies.proposals import BATCH, Proposals, row_keys
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, tau_importance
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

FREQUENT = 0.05
"""Fraction of random architectures, the best-ranked ones, that set the options of fixed genes."""
PREDICTED = 1000
"""Random architectures for importance for a limit; standard error about 0.02."""
SHORTLIST = 500
"""Number of best-scored architectures among which a Gaussian process selects."""
PATIENCE = 3
"""Generations after which the evolution in the ranking ends if its ``per_round`` best architectures did not change."""
PRIOR_POOL = 1000
"""Number of random architectures of a large space among which a prior selects the first ones."""
SLOW_PRIOR_POOL = 4
"""This number per first architecture, if a limit is slow."""
MIN_IMPORTANCE = 1e-9
"""Smallest importance of a gene that is searched."""

Importance = dict[str, dict[str, float]]
"""Metric -> gene -> |Kendall's tau|, largest first."""

Prior = Callable[[Sequence[Architecture]], Sequence[float]]
"""Function that scores architectures without evaluating them; larger is better."""


RANKERS = ("gaussian-process", "boosted")

_RANGES = {
    "samples": Range(2),
    "rounds": Range(1),
    "per_round": Range(1),
    "keep_genes": Range(0),
    "candidates": Range(10),
    "generations": Range(0),
    "parents": Range(2),
    "children": Range(1),
    "mutation_prob": Range(0, 1, exclude=(0,)),
}


@dataclass(frozen=True, kw_only=True)
class RankNASConfig:
    """Settings of RankNAS."""

    samples: int = 10
    """Number of random architectures for the first ranking; with a prior, one half are the best by it."""
    rounds: int = 58
    """Number of rounds; each learns a ranking from all evaluations."""
    per_round: int = 5
    """Architectures that are evaluated in each round."""
    keep_genes: int = 0
    """Number of most important genes to search for the minimised and for each limited metric, the others are fixed; 0
    searches all."""
    candidates: int = 2000
    """Number of random architectures at the start of evolution in the ranking."""
    generations: int = 20
    """Number of generations of evolution in the ranking."""
    parents: int = 100
    """Number of best-ranked architectures that have children."""
    children: int = 400
    """Number of children by mutation, and by crossover, per generation."""
    mutation_prob: float = 0.3
    """Probability with which mutation replaces each gene."""
    ranker: str = field(default=RANKERS[0], metadata={"choices": RANKERS})
    """Model that orders architectures: confidence bounds of a Gaussian process, or gradient-boosted trees on pairs
    (boosted)."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)


class RankNAS(Strategy):
    """RankNAS within limits. Other arguments are those of :class:`~nas_core.search.Strategy`.

    Args:
        prior: function that scores any architectures of the space before an evaluation, larger is better, such as
            ``PriorPredictor().predict`` of their graphs.
    """

    config: RankNASConfig
    name: ClassVar[str] = "ranknas"
    purpose: ClassVar[str] = "RankNAS: the best architecture under limits, by few evaluations"
    config_class: ClassVar[type[Any]] = RankNASConfig
    budget_formula: ClassVar[str] = "{samples} + {rounds} x {per_round}"
    uses_prior: ClassVar[bool] = True

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: RankNASConfig | None = None,
        *,
        seed: int = 0,
        metric: str = "loss",
        prior: Prior | None = None,
    ) -> None:
        super().__init__(space, constraints, config, seed=seed, metric=metric)
        if not (prior is None or callable(prior)):
            raise ConfigError(f"prior is {prior!r:.80}; expected a function of architectures, such as prior.predict")
        self._prior = None if prior is None else self._cached(prior)
        self._ranker: Ranker
        if self.config.ranker == RANKERS[0]:
            self._ranker = GaussianProcessRanker(self.space, self._prior)
        else:
            self._ranker = BoostedRanker(self.space, self.seed)
        self.importance: Importance = {}
        """Importance of each gene in the last ranking."""

    @property
    def budget(self) -> int:
        return self.config.samples + self.config.rounds * self.config.per_round

    @classmethod
    def settings_for(cls, evaluations: int) -> dict[str, Any]:
        """Return as many rounds as possible after the default number of samples."""
        remaining = max(1, evaluations - RankNASConfig.samples)
        per_round = min(RankNASConfig.per_round, remaining)
        return {"samples": evaluations - remaining, "per_round": per_round, "rounds": remaining // per_round}

    def describe(self) -> dict[str, Any]:
        return super().describe() | ({"prior": True} if self._prior else {})

    def insight(self) -> dict[str, Any]:
        return {"importance": self.importance, "free_genes": self.free_genes} if self.importance else {}

    @property
    def free_genes(self) -> list[str]:
        """Genes searched by the last ranking; all before the first."""
        names = [choice.name for choice in self.space.choices]
        if not self.importance or not self._prunes:
            return names
        searched = most_important(self.importance, self.config.keep_genes) | self.space.slots.depth_genes
        return [name for name in names if name in searched]

    @property
    def _prunes(self) -> bool:
        return 0 < self.config.keep_genes < len(self.space.choices)

    def _propose(self) -> Rows | None:
        if self.generation == 0:
            return self._first(self.config.samples)
        if self.generation > self.config.rounds:
            return None
        rows, values = self._evaluated()
        if len(np.unique(values)) < 2:  # too few results to fit
            return self.proposals.initial(self.rng, self.config.per_round, set(self._members))
        self._ranker.fit(rows, values)
        fast = fast_proposals(self.proposals, rows)
        return self._best_ranked(self._pruning(rows, values, fast), fast)

    def _cached(self, prior: Prior) -> PredictRows:
        def scores(rows: Rows) -> Sequence[float]:
            values = prior(self.space.architectures(rows))
            try:
                numbers = np.asarray(values, np.float64)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            if numbers.shape != (len(rows),) or not np.isfinite(numbers).all():
                raise ConfigError(
                    f"the prior returned {values!r:.80} for {len(rows)} architectures; expected one finite number each"
                )
            return numbers.tolist()  # type: ignore[no-any-return]

        return cached_rows(scores)

    def _first(self, count: int) -> Rows:
        """Return random architectures for the first generation; with a prior, one half are the best by it."""
        best = self.space.slots.empty()
        if self._prior is not None:
            slow = any(limit.batch_size for limit in self.proposals.constraints)
            rows = best if slow else self.proposals.enumerated
            if not len(rows):
                pool = SLOW_PRIOR_POOL * count if slow else PRIOR_POOL
                rows = self.proposals.take(lambda k: self.space.sample_rows(self.rng, k), pool, set())
            best = rows[np.argsort(-self._prior(rows), kind="stable")[: count // 2]]
        return np.concatenate([best, self.proposals.initial(self.rng, count - len(best), set(row_keys(best)))])

    def _pruning(self, rows: Rows, values: NDArray[np.float64], fast: Proposals) -> Callable[[Rows], Rows]:
        limits = {name: genes for name, genes in self.importance.items() if name != self.metric}
        if self._prunes and not limits:  # predictions stay the same
            others = [constraint for constraint in fast.constraints if constraint.name != self.metric]
            limits = limit_importance(self.space, others, self.seed)
        self.importance = {self.metric: importance_of(self.space, rows, values), **limits}
        if not self._prunes:
            return lambda samples: samples
        searched = set(self.free_genes)
        samples = fast.take(lambda k: self.space.sample_rows(self.rng, k), self.config.candidates, set())
        if not len(samples):
            return lambda samples: samples
        best = samples[np.argsort(self._ranker.score(samples), kind="stable")[: max(1, round(FREQUENT * len(samples)))]]
        preferred = np.array([_most_frequent(column) for column in best.T], np.int16)
        genes = zip(self.space.choices, self.space.slots.columns, strict=True)
        dropped = [columns for choice, columns in genes if choice.name not in searched]

        def pruned(samples: Rows) -> Rows:
            result = samples.copy()
            for columns in dropped:
                result[:, columns] = preferred[columns]
            return self.space.slots.canonical(result)

        return pruned

    def _best_ranked(self, pruned: Callable[[Rows], Rows], fast: Proposals) -> Rows:
        ranker, count, evaluated = self._ranker, self.config.per_round, set(self._members) | set(self._scores)
        scores_all = isinstance(ranker, GaussianProcessRanker) and not self._prunes
        if scores_all and len(enumerated := self.proposals.enumerated):
            order = enumerated[np.argsort(ranker.score(enumerated), kind="stable")]
            order = order if fast is self.proposals else order[fast.feasible(order)]
        else:
            order = self._evolved(pruned, fast)
        order = order[: len(evaluated) + BATCH]
        order = order[[key not in evaluated for key in row_keys(order)]]
        if isinstance(ranker, GaussianProcessRanker):
            order = np.concatenate([ranker.select(order[:SHORTLIST], count), order])
        batch = self.proposals.take(lambda k: order[:k], count, evaluated)
        return self._with_children(batch, count, evaluated, count, self.config.mutation_prob)

    def _evolved(self, pruned: Callable[[Rows], Rows], fast: Proposals) -> Rows:
        config, space, rng = self.config, self.space, self.rng
        scores: dict[bytes, float] = {}
        leaders: list[bytes] = []

        def rank(rows: Rows) -> Rows:
            nonlocal leaders
            fresh = rows[[key not in scores for key in row_keys(rows)]]
            keys = row_keys(fresh)
            scores.update(zip(keys, self._ranker.score(fresh).tolist() if len(fresh) else (), strict=True))
            leaders = best_first([*leaders, *keys])[: config.parents]
            return fresh

        def best_first(keys: Iterable[bytes]) -> list[bytes]:
            return sorted(keys, key=lambda key: (scores[key], key))

        initial = fast.take(lambda k: pruned(space.sample_rows(rng, k)), config.candidates, set())
        rank(initial if len(initial) else self.proposals.initial(rng, config.per_round, set()))
        rank(self._rows(self._best_first()[:1]))
        unchanged = 0
        for _ in range(config.generations):
            parents, best, excluded = self._rows(leaders), leaders[: config.per_round], set(scores)

            def mutated(k: int, parents: Rows = parents) -> Rows:
                return pruned(self._mutated(parents, k, config.mutation_prob))

            def crossed(k: int, parents: Rows = parents) -> Rows:
                return pruned(self._crossed(parents, k))

            new = [rank(fast.take(mutated, config.children, excluded))]
            if len(parents) > 1:
                new.append(rank(fast.take(crossed, config.children, excluded)))
            unchanged = unchanged + 1 if leaders[: config.per_round] == best else 0
            if unchanged == PATIENCE or not sum(map(len, new)):
                break
        return self._rows(best_first(scores))


def _most_frequent(column: NDArray[np.int16]) -> int:
    present = column[column >= 0]
    return int(np.bincount(present).argmax()) if len(present) else 0


def importance_of(space: SearchSpace, rows: Rows, values: NDArray[np.float64]) -> dict[str, float]:
    """Return gene -> :func:`tau_importance` for values ``(n,)`` of architectures ``(n, slots)``."""
    taus = tau_importance(space.encode_rows(rows).astype(np.float64), values)
    names = [choice.name for choice in space.choices]
    return dict(sorted(zip(names, taus.tolist(), strict=True), key=lambda pair: -pair[1]))


def limit_importance(space: SearchSpace, constraints: Sequence[Constraint], seed: int) -> Importance:
    """Return limited metric -> gene -> importance, from predictions for random architectures."""
    importance: Importance = {}
    for constraint in constraints:
        rows = space.sample_rows(np.random.default_rng([seed, PREDICTED]), PREDICTED)
        values = constraint.values(rows)
        finite = np.isfinite(values)
        if finite.any():
            importance[constraint.name] = importance_of(space, rows[finite], values[finite])
    return importance


def most_important(importance: Importance, keep: int) -> set[str]:
    """Return the ``keep`` most important genes of each metric."""
    tops = [list(genes.items())[:keep] for genes in importance.values()]
    return {gene for top in tops for gene, tau in top if tau > MIN_IMPORTANCE}
