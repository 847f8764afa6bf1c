"""RankNAS: learn to rank from few evaluations, drop what does not matter, search in the ranking, look at the best.

Hu et al., "RankNAS: Efficient Neural Architecture Search by Pairwise Ranking", EMNLP 2021, and its use in Liu et al.,
"Neural Architecture Search on Efficient Transformers and Beyond", 2022, 3.1.2. Where we differ, or had to choose:

- Genes that matter are known by |Kendall's tau|, as in the released code: with the metric over what was evaluated, and
  with each limited metric (latency, parameters) over predictions for random architectures. The most important ones for
  either stay free (the papers list five for accuracy and five for efficiency, and do not say how they are joined). The
  others are set to the options that are most frequent among the best-ranked random architectures (the papers do not say
  to what).
- The finalists' evaluations join the training data and the ranking is learned again, ``rounds`` times.
- Rejection sampling is capped, as everywhere here; the released loops are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError, unknown_choice
from nas_core.search.constraints import Constraint
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.gene_importance import (
    Importance,
    importance_of,
    limit_importance,
    most_important,
    read_importance,
)
from nas_core.search.strategies.proposals import row_keys
from nas_core.search.strategies.ranker import BoostedRanker, Ranker, RankerConfig
from nas_core.space import SearchSpace
from nas_core.space.slots import Rows

__all__ = ["PRUNE_BY", "RankNAS", "RankNASConfig"]

PRUNE_BY = ("metric-and-limits", "metric")
"""What a gene has to matter to in order to stay free."""

FREQUENT = 0.05
"""Share of the random architectures whose options are counted for genes that do not matter."""


@dataclass(frozen=True, kw_only=True)
class RankNASConfig:
    """Settings of RankNAS.

    Raises:
        ConfigError, UnknownChoiceError: a value out of range.
    """

    samples: int = 100
    """Random architectures that the first ranking is learned from."""
    rounds: int = 8
    """Rankings learned, each from all evaluations so far."""
    finalists: int = 25
    """Architectures that each ranking proposes for evaluation."""
    explore: float = 0.2
    """Share of the finalists that are children of the best evaluated architectures instead, whatever the ranking says:
    where it is wrong, it learns from them."""
    keep: int = 5
    """Genes that stay free, the most important ones for the metric and as many for each limited metric; 0: all."""
    prune_by: str = PRUNE_BY[0]
    """``metric``: only what matters to the metric stays free, whatever is limited. Without a limit it is the same."""
    candidates: int = 2000
    """Random architectures that evolution in the ranking starts from."""
    iterations: int = 20
    """Generations of evolution in the ranking; they cost no evaluation."""
    parents: int = 100
    """Best-ranked architectures that have children."""
    children: int = 400
    """By mutation, and as many by crossover, in each generation."""
    mutation_prob: float = 0.3
    """Probability with which mutation replaces a gene."""
    ranker: RankerConfig = field(default_factory=RankerConfig)
    """Of the default ranker."""

    def __post_init__(self) -> None:
        least = {"samples": 2, "rounds": 1, "finalists": 1, "keep": 0, "candidates": 10, "iterations": 0, "parents": 2,
                 "children": 1}  # fmt: skip
        for name, smallest in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
                raise ConfigError(f"{name} is {value!r}; expected a whole number of at least {smallest}")
        if not 0 <= self.explore <= 1:
            raise ConfigError(f"explore is {self.explore!r}; expected a share from 0 to 1")
        if not 0 < self.mutation_prob <= 1:
            raise ConfigError(f"mutation_prob is {self.mutation_prob!r}; expected a probability above 0 and up to 1")
        if self.prune_by not in PRUNE_BY:
            raise unknown_choice("prune_by", self.prune_by, PRUNE_BY)


class RankNAS(Strategy):
    """RankNAS with hard constraints, behind ask/tell; the module lists what is ours.

    Args:
        ranker: makes what orders architectures, from the space and a seed; default: :class:`BoostedRanker`. A ranker of
            another kind (NN-Former) has to be told by name in ``ranker_name``, so that a saved search is not continued
            with another one.
    """

    before: ClassVar[Mapping[str, Any]] = {"prune_by": "metric"}

    def __init__(
        self,
        space: SearchSpace,
        constraints: Sequence[Constraint] = (),
        config: RankNASConfig | None = None,
        *,
        seed: int = 0,
        metric: str = "loss",
        max_tries: int = 20_000,
        ranker: Callable[[SearchSpace, int], Ranker] | None = None,
        ranker_name: str = "boosted trees",
    ) -> None:
        super().__init__(space, constraints, seed=seed, metric=metric, max_tries=max_tries)
        self.config = config or RankNASConfig()
        self.ranker_name = ranker_name
        self._make = ranker or (lambda space, seed: BoostedRanker(space, self.config.ranker, seed))
        self.importance: Importance = {}
        """Metric -> gene -> importance: for the metric in the last ranking, then for what is limited."""

    @property
    def budget(self) -> int:
        return self.config.samples + self.config.rounds * self.config.finalists

    def describe(self) -> dict[str, Any]:
        by = {"prune_by": PRUNE_BY[0] if self._limits_count else "metric"}
        return {**super().describe(), **asdict(self.config), **by, "ranker_name": self.ranker_name}

    def insight(self) -> dict[str, Any]:
        return {"importance": self.importance, "free_genes": self.free_genes} if self.importance else {}

    @property
    def free_genes(self) -> list[str]:
        """The genes that the last ranking left free, in the space's order; all before the first one."""
        names = [choice.name for choice in self.space.choices]
        if not self.importance or not self._prunes:
            return names
        metrics = self.importance if self._limits_count else [self.metric]
        kept = most_important(self.importance, self.config.keep, metrics) | self.space.slots.depth_genes
        return [name for name in names if name in kept]

    @property
    def _prunes(self) -> bool:
        return 0 < self.config.keep < len(self.space.choices)

    @property
    def _limits_count(self) -> bool:
        """Whether genes stay free for the sake of a limit."""
        limited = self.config.keep > 0 and bool(self.proposals.constraints)
        return limited and self.config.prune_by == PRUNE_BY[0]

    def _propose(self) -> Rows | None:
        if self.generation == 0:
            return self.proposals.initial(self.rng, self.config.samples, set())
        if self.generation > self.config.rounds:
            return None
        rows, values = self._evaluated()
        if len(np.unique(values)) < 2:  # nothing to learn from yet
            return self.proposals.initial(self.rng, self.config.finalists, set(self._members))
        ranker = self._make(self.space, self.seed)
        ranker.fit(rows, values)
        return self._finalists(ranker, self._pruning(ranker, rows, values))

    def _evaluated(self) -> tuple[Rows, NDArray[np.float64]]:
        """All successful evaluations, in an order that does not depend on who was told first."""
        others = sorted(key for key in self._scores if key not in self._members)
        keys = [key for key in (*self._members, *others) if math.isfinite(self._scores.get(key, math.inf))]
        return self._rows(keys), np.array([self._scores[key] for key in keys])

    def _pruning(self, ranker: Ranker, rows: Rows, values: NDArray[np.float64]) -> Callable[[Rows], Rows]:
        """What sets the genes that do not matter to the options that the ranking prefers."""
        limits = {name: genes for name, genes in self.importance.items() if name != self.metric}
        if self._limits_count and self._prunes and not limits:  # predictions stay the same
            others = [constraint for constraint in self.proposals.constraints if constraint.name != self.metric]
            limits = limit_importance(self.space, others, self.seed)
        self.importance = {self.metric: importance_of(self.space, rows, values), **limits}
        if not self._prunes:
            return lambda drawn: drawn
        kept = set(self.free_genes)
        drawn = self.proposals.take(lambda k: self.space.sample_rows(self.rng, k), self.config.candidates, set())
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

    def _finalists(self, ranker: Ranker, pruned: Callable[[Rows], Rows]) -> Rows:
        """The best-ranked architectures that were not evaluated yet, by evolution in the ranking."""
        config, space, rng = self.config, self.space, self.rng
        seen: dict[bytes, float] = {}

        def ranked(rows: Rows) -> Rows:
            fresh = rows[[key not in seen for key in row_keys(rows)]]
            seen.update(zip(row_keys(fresh), ranker.score(fresh).tolist() if len(fresh) else (), strict=True))
            return fresh

        start = self.proposals.take(lambda k: pruned(space.sample_rows(rng, k)), config.candidates, set())
        ranked(start if len(start) else self.proposals.initial(rng, config.finalists, set()))
        best = min((key for key, score in self._scores.items() if math.isfinite(score)), key=self._order)
        ranked(self._rows([best]))
        for _ in range(config.iterations):
            parents = self._rows(sorted(seen, key=lambda key: (seen[key], key))[: config.parents])
            count, taken = len(parents), set(seen)

            def mutated(k: int, parents: Rows = parents, count: int = count) -> Rows:
                return pruned(space.mutate_rows(parents[rng.integers(count, size=k)], config.mutation_prob, rng))

            def crossed(k: int, parents: Rows = parents, count: int = count) -> Rows:
                first = rng.integers(count, size=k)
                second = (first + rng.integers(1, count, size=k)) % count
                return pruned(space.crossover_rows(parents[first], parents[second], rng))

            new = [ranked(self.proposals.take(mutated, config.children, taken))]
            if count > 1:
                new.append(ranked(self.proposals.take(crossed, config.children, taken)))
            if not sum(map(len, new)):
                break
        known = set(self._members) | set(self._scores)
        order = [key for key in sorted(seen, key=lambda key: (seen[key], key)) if key not in known]
        return self._filled(order[: config.finalists - round(config.explore * config.finalists)], known)

    def _filled(self, chosen: list[bytes], known: set[bytes]) -> Rows:
        """The finalists: those chosen, children of the best evaluated architectures, and if need be random ones."""
        count, taken = self.config.finalists, known | set(chosen)
        good = sorted((key for key, score in self._scores.items() if math.isfinite(score)), key=self._order)
        parents = self._rows(good[:count])

        def mutated(k: int) -> Rows:
            drawn = parents[self.rng.integers(len(parents), size=k)]
            return self.space.mutate_rows(drawn, self.config.mutation_prob, self.rng)

        rows = [self._rows(chosen)]
        rows.append(self.proposals.take(mutated, count - len(chosen), taken))
        missing = count - sum(map(len, rows))
        if missing:
            rows.append(self.proposals.take(lambda k: self.space.sample_rows(self.rng, k), missing, taken))
        return np.concatenate(rows)

    def _order(self, key: bytes) -> tuple[float, bytes]:
        return self._scores[key], key

    def _state(self) -> dict[str, Any]:
        return {"importance": self.importance}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.importance = read_importance(state["importance"], self.metric)


def _most_frequent(column: NDArray[np.int16]) -> int:
    """Of the options in a column; layers that do not exist have none."""
    there = column[column >= 0]
    return int(np.bincount(there).argmax()) if len(there) else 0
