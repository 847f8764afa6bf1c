"""The strategies and rankers that ``nas-ext search`` offers by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from nas_core.errors import ConfigError, NasExtError, unknown_choice
from nas_core.search.constraints import Constraint
from nas_core.search.strategies.base import Strategy
from nas_core.search.strategies.evolution import EvolutionConfig, HATEvolution
from nas_core.search.strategies.multi_objective import MultiObjectiveConfig, MultiObjectiveEvolution
from nas_core.search.strategies.random_search import RandomConfig, RandomSearch
from nas_core.search.strategies.ranker import RankerConfig
from nas_core.search.strategies.ranknas import RankNAS, RankNASConfig
from nas_core.space import SearchSpace

__all__ = ["RANKERS", "STRATEGIES", "StrategyOptions", "how_many", "strategy_maker"]

RANKERS = ("boosted", "regression", "nn-former")

Make = Callable[[SearchSpace, Sequence[Constraint], Sequence[str], int], Strategy]
"""From the space, its limits, the objectives of a front and the seed."""


@dataclass(frozen=True, kw_only=True)
class StrategyOptions:
    """Options of all strategies as the command line gives them; each takes its own, None is its default."""

    iterations: int | None = None
    population: int | None = None
    parents: int | None = None
    mutations: int | None = None
    crossovers: int | None = None
    mutation_prob: float | None = None
    samples: int | None = None
    rankings: int | None = None
    per_ranking: int | None = None
    keep_genes: int | None = None
    prune_by: str | None = None
    ranker: str | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these options that are not None."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def unused(self, strategy: str) -> list[str]:
        """Those given that the strategy does not read, as they stand on the command line."""
        others = [field.name for field in fields(self) if field.name not in READ[strategy]]
        return [f"--{name.replace('_', '-')}" for name in self.given(*others)]


EVOLUTION = ("iterations", "population", "parents", "mutations", "crossovers", "mutation_prob")
RANKNAS = ("samples", "rankings", "per_ranking", "keep_genes", "prune_by", "ranker", "mutation_prob")
READ = {"evolution": EVOLUTION, "random": EVOLUTION, "multi-objective": EVOLUTION, "ranknas": RANKNAS}
"""Strategy -> the options that it reads."""
OWN = ("prune_by", "ranker")
"""Options of ranknas that name a choice: with another strategy they are a mistake; numbers are only passed over."""


def strategy_maker(name: str, options: StrategyOptions) -> Make:
    """What makes the strategy of that name, its options checked: a supernet takes long to open.

    Raises:
        UnknownChoiceError: no strategy or ranker of that name. ConfigError: an option out of range.
    """
    if name not in STRATEGIES:
        raise unknown_choice("strategy", name, list(STRATEGIES))
    for own in OWN if name != "ranknas" else ():
        if getattr(options, own) is not None:
            flag = f"--{own.replace('_', '-')}"
            raise ConfigError(f"{flag} is of --strategy ranknas, and the strategy is {name}; leave one of them out")
    return STRATEGIES[name](options)


def how_many(name: str, options: StrategyOptions, budgets: Sequence[int]) -> str:
    """What these options make the searches evaluate at most, and which of them change it."""
    each = f"{budgets[0]:,} architectures" + (f" in each of {len(budgets)} searches" if len(budgets) > 1 else "")
    if name == "ranknas":
        c = _ranknas_config(options)
        made = f"--samples {c.samples} + --rankings {c.rounds} x --per-ranking {c.finalists}"
    elif name == "multi-objective":
        m = _front_config(options)
        children = f"(--mutations {m.mutations} + --crossovers {m.crossovers})"
        made = f"--parents {m.parents} + {m.iterations - 1} x {children}, with --iterations {m.iterations}"
    else:
        e = _hat_config(options)
        children = f"(--mutations {e.mutations} + --crossovers {e.crossovers})"
        made = f"--population {e.population} + {e.iterations - 1} x {children}, with --iterations {e.iterations}"
    return f"at most {each} to evaluate: {made}"


@contextmanager
def _flags_for(names: Mapping[str, str]) -> Iterator[None]:
    """Errors of a strategy's settings name its fields; who typed a command reads options instead.

    Args:
        names: option -> field.
    """
    try:
        yield
    except NasExtError as error:
        flags = {field: f"--{option.replace('_', '-')}" for option, field in names.items()}
        fields_named = rf"(?<![-\w])({'|'.join(flags)})(?!\w)"
        typed = re.sub(fields_named, lambda match: flags[match[1]], error.command_line)
        raise type(error)(str(error), command_line=typed) from None


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
    with _flags_for({name: name for name in EVOLUTION}):
        return EvolutionConfig.of(**options.given(*EVOLUTION))


def _front_config(options: StrategyOptions) -> MultiObjectiveConfig:
    """As many as the population survive, and as many children are made, half of each kind; what else is given stays."""
    given = options.given(*EVOLUTION)
    population = given.pop("population", None)
    if population is not None:
        shares = {"parents": population, "mutations": (population + 1) // 2, "crossovers": population // 2}
        if set(shares) <= set(given):
            raise ConfigError("--population is given with --parents, --mutations and --crossovers; leave it out")
        given = {**shares, **given}
    with _flags_for({name: name for name in EVOLUTION}):
        return MultiObjectiveConfig(**given)


def _multi_objective(options: StrategyOptions) -> Make:
    config = _front_config(options)

    def make(space: SearchSpace, constraints: Sequence[Constraint], objectives: Sequence[str], seed: int) -> Strategy:
        if len(objectives) < 2:
            raise ConfigError(
                f"--strategy multi-objective has nothing to weigh against {objectives[0]}: costs on paper are not"
                f" defined for space {space.name!r}; give --latency-model"
            )
        return MultiObjectiveEvolution(space, constraints, config, objectives=objectives, seed=seed)

    return make


def _ranknas_config(options: StrategyOptions) -> RankNASConfig:
    names = {"samples": "samples", "rankings": "rounds", "per_ranking": "finalists", "keep_genes": "keep",
             "prune_by": "prune_by", "mutation_prob": "mutation_prob"}  # fmt: skip
    given = {names[name]: value for name, value in options.given(*names).items()}
    objective = "regression" if options.ranker == "regression" else "pairwise"
    with _flags_for(names):
        return RankNASConfig(**given, ranker=RankerConfig(objective=objective))


def _ranknas(options: StrategyOptions) -> Make:
    ranker = RANKERS[0] if options.ranker is None else options.ranker
    if ranker not in RANKERS:
        raise unknown_choice("ranker", ranker, RANKERS)
    config = _ranknas_config(options)
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
