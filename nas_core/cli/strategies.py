"""The strategies and rankers that ``nas-ext search`` offers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nas_core.errors import ConfigError, unknown_choice
from nas_core.search import (
    Constraint,
    EvolutionConfig,
    HATEvolution,
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    RankerConfig,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.space import SearchSpace

__all__ = ["RANKERS", "STRATEGIES", "StrategyOptions", "strategy_maker"]

RANKERS = ("boosted", "regression", "nn-former")

Make = Callable[[SearchSpace, Sequence[Constraint], Sequence[str], int], Strategy]
"""From the space, its limits, the objectives of a front and the seed."""


@dataclass(frozen=True, kw_only=True)
class StrategyOptions:
    """Options of all strategies as the command line gives them; each takes its own, None is its default."""

    iterations: int
    population: int | None
    parents: int | None
    mutations: int
    crossovers: int
    mutation_prob: float | None
    samples: int
    rankings: int
    per_ranking: int
    keep_genes: int
    ranker: str | None

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these options that are not None."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def strategy_maker(name: str, options: StrategyOptions) -> Make:
    """What makes the strategy of that name, its options checked: a supernet takes long to open.

    Raises:
        UnknownChoiceError: no strategy or ranker of that name. ConfigError: an option out of range.
    """
    if name not in STRATEGIES:
        raise unknown_choice("strategy", name, list(STRATEGIES))
    if options.ranker is not None and name != "ranknas":
        raise ConfigError(f"--ranker is of --strategy ranknas, and the strategy is {name}; leave one of them out")
    return STRATEGIES[name](options)


def _evolution(options: StrategyOptions) -> Make:
    config = _hat_config(options)
    return lambda space, constraints, _, seed: HATEvolution(space, constraints, config, seed=seed)


def _random(options: StrategyOptions) -> Make:
    """As many evaluations as the evolution with these settings proposes."""
    config = _hat_config(options)

    def make(space: SearchSpace, constraints: Sequence[Constraint], _: Sequence[str], seed: int) -> Strategy:
        evaluations = HATEvolution(space, config=config).budget
        return RandomSearch(space, constraints, RandomConfig(evaluations=evaluations), seed=seed)

    return make


def _hat_config(options: StrategyOptions) -> EvolutionConfig:
    given = options.given("iterations", "parents", "mutations", "crossovers", "mutation_prob")
    everyone = given.get("parents", EvolutionConfig.parents) + options.mutations + options.crossovers
    return EvolutionConfig(**given, population=everyone if options.population is None else options.population)


def _multi_objective(options: StrategyOptions) -> Make:
    if options.population is not None:
        raise ConfigError("--population is of --strategy evolution; give --parents, the members that survive")
    config = MultiObjectiveConfig(**options.given("iterations", "parents", "mutations", "crossovers", "mutation_prob"))

    def make(space: SearchSpace, constraints: Sequence[Constraint], objectives: Sequence[str], seed: int) -> Strategy:
        if len(objectives) < 2:
            raise ConfigError(
                f"--strategy multi-objective has nothing to weigh against {objectives[0]}: costs on paper are not"
                f" defined for space {space.name!r}; give --latency-model"
            )
        return MultiObjectiveEvolution(space, constraints, config, objectives=objectives, seed=seed)

    return make


def _ranknas(options: StrategyOptions) -> Make:
    ranker = RANKERS[0] if options.ranker is None else options.ranker
    if ranker not in RANKERS:
        raise unknown_choice("ranker", ranker, RANKERS)
    config = RankNASConfig(
        samples=options.samples,
        rounds=options.rankings,
        finalists=options.per_ranking,
        keep=options.keep_genes,
        ranker=RankerConfig(objective="regression" if ranker == "regression" else "pairwise"),
        **options.given("mutation_prob"),
    )
    if ranker != "nn-former":
        return lambda space, constraints, _, seed: RankNAS(space, constraints, config, seed=seed)

    def make(space: SearchSpace, constraints: Sequence[Constraint], _: Sequence[str], seed: int) -> Strategy:
        from nas_core.predictor.ranker import NNFormerRanker, reader_of

        reader_of(space)  # said now, not after the first hundred evaluations
        return RankNAS(space, constraints, config, seed=seed, ranker=NNFormerRanker, ranker_name=ranker)

    return make


STRATEGIES: Mapping[str, Callable[[StrategyOptions], Make]] = {
    "evolution": _evolution,
    "random": _random,
    "ranknas": _ranknas,
    "multi-objective": _multi_objective,
}
