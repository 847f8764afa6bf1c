"""RankNAS: learn to rank from few evaluations, drop what does not matter, search in the ranking, look at the best.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021, and its use in Liu et al.,
"Neural Architecture Search on Efficient Transformers and Beyond", 2022, 3.1.2. Where we differ, or had to choose:

- Genes that matter are known by |Kendall's tau|, as in the released code: with the metric over what was evaluated, and
  with each limited metric (latency, parameters) over predictions for random architectures. The most important ones for
  either stay free (the papers list five for accuracy and five for efficiency, and do not say how they are joined). The
  others are set to the options that are most frequent among the best-ranked random architectures (the papers do not say
  to what).
- The evaluations of what a ranking proposes join the training data and the ranking is learned anew, ``rankings`` times.
- Rejection sampling is capped, as everywhere here; the released loops are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.search.constraints import Limits
from nas_core.search.strategies.additive import estimated
from nas_core.search.strategies.gene_importance import (
    Importance,
    importance_of,
    limit_importance,
    most_important,
)
from nas_core.search.strategies.informed import InformedStrategy
from nas_core.search.strategies.proposals import Proposals, row_keys
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, RankerConfig
from nas_core.search.strategies.ranknas_config import PRUNE_BY, RankNASConfig
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

FREQUENT = 0.05
"""Share of the random architectures whose options are counted for genes that do not matter."""


class RankNAS(InformedStrategy):
    """RankNAS with hard constraints, behind ask/tell; the module lists what is ours.

    Args:
        ranker: makes what orders architectures, from the space and a seed; default: what ``config.ranker`` names. One
            of another kind has to be told by name in ``ranker_name``, so that a saved search is not continued with
            another one.

    Raises:
        ConfigError: no graph reader takes architectures of this space, which ``ranker: nn-former`` and ``improvement``
            need.
    """

    config: RankNASConfig
    name: ClassVar[str] = "ranknas"
    purpose: ClassVar[str] = "RankNAS: the best architecture under limits, by few evaluations"
    config_class: ClassVar[type[Any]] = RankNASConfig
    budget_told: ClassVar[str] = "{samples} + {rankings} x {per_ranking}"

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: RankNASConfig | None = None,
        *,
        seed: int = 0,
        metric: str = "loss",
        max_tries: int = 20_000,
        ranker: Callable[[SearchSpace, int], Ranker] | None = None,
        ranker_name: str | None = None,
    ) -> None:
        super().__init__(space, constraints, config, seed=seed, metric=metric, max_tries=max_tries)
        self.ranker_name = ranker_name or self.config.ranker
        self._make = ranker or self._ranker()
        self.importance: Importance = {}
        """Metric -> gene -> importance: for the metric in the last ranking, then for what is limited."""

    def _ranker(self) -> Callable[[SearchSpace, int], Ranker]:
        if self.config.ranker == "nn-former":
            from nas_core.predictor.ranker import NNFormerRanker, check_readable  # torch, which takes seconds to import

            check_readable(self.space)  # now, not after the first hundred evaluations
            return NNFormerRanker
        if self.config.ranker == "improvement":
            from nas_core.predictor.ranker import ImprovementRanker, check_readable

            check_readable(self.space)
            return ImprovementRanker
        return lambda space, seed: BoostedRanker(space, self.config.trees, seed)

    @property
    def budget(self) -> int:
        return self.config.samples + self.config.rankings * self.config.per_ranking

    @classmethod
    def suited(cls, config: RankNASConfig, given: Mapping[str, Any], space: SearchSpace) -> RankNASConfig:
        """A space whose genes are mostly names (operations) is ranked by which of them are chosen. Where no gene is
        shared by layers none is dropped: five for the metric and five for each limit are meant for shared ones."""
        genes = [choice.options[0] for choice in space.choices]
        names = sum(all(isinstance(option, str) for option in options) for options in genes)
        trees = given.get("trees") or {}
        chosen = isinstance(trees, RankerConfig) or "encoding" in trees
        if not chosen and 2 * names > len(genes):
            config = replace(config, trees=replace(config.trees, encoding="onehot"))
        if "keep_genes" not in given and not space.slots.depth_genes:
            config = replace(config, keep_genes=0)
        return config

    def describe(self) -> dict[str, Any]:
        by = {"prune_by": PRUNE_BY[0] if self._limits_count else "metric"}
        return {**super().describe(), **by, "ranker": self.ranker_name}

    def insight(self) -> dict[str, Any]:
        return {"importance": self.importance, "free_genes": self.free_genes} if self.importance else {}

    @property
    def free_genes(self) -> list[str]:
        """The genes that the last ranking left free, in the space's order; all before the first one."""
        names = [choice.name for choice in self.space.choices]
        if not self.importance or not self._prunes:
            return names
        metrics = self.importance if self._limits_count else [self.metric]
        kept = most_important(self.importance, self.config.keep_genes, metrics) | self.space.slots.depth_genes
        return [name for name in names if name in kept]

    @property
    def _prunes(self) -> bool:
        return 0 < self.config.keep_genes < len(self.space.choices)

    @property
    def _limits_count(self) -> bool:
        """Whether genes stay free for the sake of a limit."""
        limited = self.config.keep_genes > 0 and bool(self.proposals.constraints)
        return limited and self.config.prune_by == PRUNE_BY[0]

    def _propose(self) -> Rows | None:
        if self.generation == 0:
            return self.proposals.initial(self.rng, self.config.samples, set())
        if self.generation > self.config.rankings:
            return None
        rows, values = self._evaluated()
        if len(np.unique(values)) < 2:  # nothing to learn from yet
            return self.proposals.initial(self.rng, self.config.per_ranking, set(self._members))
        ranker = self._make(self.space, self.seed)
        ranker.fit(rows, values)
        rough = self._rough(rows)
        return self._best_ranked(ranker, self._pruning(ranker, rows, values, rough), rough)

    def _rough(self, rows: Rows) -> Proposals:
        """Return proposals that ask no slow constraint, which is estimated from its values for these rows instead."""
        limits = self.proposals.constraints
        if not any(limit.together for limit in limits):
            return self.proposals
        fast = [estimated(limit, self.space, rows) if limit.together else limit for limit in limits]
        return Proposals(self.space, fast, self.proposals.max_tries)

    def _pruning(
        self, ranker: Ranker, rows: Rows, values: NDArray[np.float64], rough: Proposals
    ) -> Callable[[Rows], Rows]:
        """What sets the genes that do not matter to the options that the ranking prefers."""
        limits = {name: genes for name, genes in self.importance.items() if name != self.metric}
        if self._limits_count and self._prunes and not limits:  # predictions stay the same
            others = [constraint for constraint in rough.constraints if constraint.name != self.metric]
            limits = limit_importance(self.space, others, self.seed)
        self.importance = {self.metric: importance_of(self.space, rows, values), **limits}
        if not self._prunes:
            return lambda drawn: drawn
        kept = set(self.free_genes)
        drawn = rough.take(lambda k: self.space.sample_rows(self.rng, k), self.config.candidates, set())
        if not len(drawn):
            return lambda drawn: drawn
        best = drawn[np.argsort(ranker.score(drawn), kind="stable")[: max(1, round(FREQUENT * len(drawn)))]]
        preferred = np.array([_most_frequent(column) for column in best.T], np.int16)
        genes = zip(self.space.choices, self.space.slots.columns, strict=True)
        dropped = [columns for choice, columns in genes if choice.name not in kept]

        def pruned(drawn: Rows) -> Rows:
            changed = drawn.copy()
            for columns in dropped:
                changed[:, columns] = preferred[columns]
            return self.space.slots.canonical(changed)

        return pruned

    def _best_ranked(self, ranker: Ranker, pruned: Callable[[Rows], Rows], rough: Proposals) -> Rows:
        """The best-ranked architectures that were not evaluated yet, by evolution in the ranking. Slow constraints are
        asked for these alone, the best first."""
        config, space, rng = self.config, self.space, self.rng
        seen: dict[bytes, float] = {}

        def ranked(rows: Rows) -> Rows:
            fresh = rows[[key not in seen for key in row_keys(rows)]]
            seen.update(zip(row_keys(fresh), ranker.score(fresh).tolist() if len(fresh) else (), strict=True))
            return fresh

        start = rough.take(lambda k: pruned(space.sample_rows(rng, k)), config.candidates, set())
        ranked(start if len(start) else self.proposals.initial(rng, config.per_ranking, set()))
        ranked(self._rows(self._best_first()[:1]))
        for _ in range(config.generations):
            parents = self._rows(sorted(seen, key=lambda key: (seen[key], key))[: config.parents])
            count, taken = len(parents), set(seen)

            def mutated(k: int, parents: Rows = parents, count: int = count) -> Rows:
                return pruned(space.mutate_rows(parents[rng.integers(count, size=k)], config.mutation_prob, rng))

            def crossed(k: int, parents: Rows = parents, count: int = count) -> Rows:
                first = rng.integers(count, size=k)
                second = (first + rng.integers(1, count, size=k)) % count
                return pruned(space.crossover_rows(parents[first], parents[second], rng))

            new = [ranked(rough.take(mutated, config.children, taken))]
            if count > 1:
                new.append(ranked(rough.take(crossed, config.children, taken)))
            if not sum(map(len, new)):
                break
        known = set(self._members) | set(self._scores)
        order = self._rows(key for key in sorted(seen, key=lambda key: (seen[key], key)) if key not in known)
        count = config.per_ranking
        chosen = self.proposals.take(lambda k: order[:k], count - round(config.explore * count), known)
        return self._with_children(chosen, count, known, count, config.mutation_prob)

    def _state(self) -> dict[str, Any]:
        return {"importance": self.importance}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.importance = {
            metric: {gene: float(value) for gene, value in genes.items()}
            for metric, genes in state["importance"].items()
        }


def _most_frequent(column: NDArray[np.int16]) -> int:
    """The most frequent option in a column; layers that do not exist have none."""
    there = column[column >= 0]
    return int(np.bincount(there).argmax()) if len(there) else 0
