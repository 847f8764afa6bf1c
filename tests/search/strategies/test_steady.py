"""Strategies behind an engine that never waits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nas_core.errors import ArchitectureError
from nas_core.search import EvolutionConfig, HATEvolution, RandomConfig, RandomSearch, RankNAS, RankNASConfig, Strategy
from nas_core.search.strategies.steady import SteadySearch
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, TINY, limit, quality, size

BOUND = limit(3000.0)


def evolution(seed: int = 0) -> Strategy:
    config = EvolutionConfig(iterations=4, population=20, parents=6)
    return HATEvolution(SPACE, [BOUND], config, seed=seed)


def ranknas(seed: int = 0) -> Strategy:
    config = RankNASConfig(samples=20, rounds=2, per_round=8, candidates=100, generations=2, parents=10, children=20)
    return RankNAS(SPACE, [BOUND], config, seed=seed)


def random(seed: int = 0) -> Strategy:
    return RandomSearch(SPACE, [BOUND], RandomConfig(evaluations=40, batch=10), seed=seed)


strategies = pytest.mark.parametrize("make", [evolution, ranknas, random])
Make = Callable[..., Strategy]


def members(strategy: Strategy) -> list[list[int]]:
    return [row.tolist() for row in strategy._rows(strategy._members)]  # private: no public member has the order


def run(search: SteadySearch, workers: int, rng: np.random.Generator, most: int = 10_000) -> list[Architecture]:
    """Workers that are never idle and end in random order; the architectures in the order they were handed out."""
    proposals: list[Architecture] = []
    running: list[Architecture] = []
    over = False
    while running or not over:
        while len(running) < workers and not over and len(proposals) < most:
            architecture = search.next()
            if architecture is None:
                over = True
                break
            proposals.append(architecture)
            running.append(architecture)
        if len(proposals) >= most:
            return proposals
        if running:
            done = running.pop(int(rng.integers(len(running))))
            assert search.tell(done, {"loss": quality(done)})
    return proposals


@strategies
@pytest.mark.parametrize("workers", [1, 4])
def test_workers_are_never_idle_and_nothing_is_handed_out_twice(make: Make, workers: int) -> None:
    search = SteadySearch(make())
    proposals = run(search, workers, np.random.default_rng(1))
    assert len(proposals) == len(set(proposals))
    assert (BOUND.values(SPACE.rows(proposals)) <= BOUND.limit).all()
    assert search.strategy.finished
    assert not search.running
    assert (search.spares > 0) == (workers > 1 and search.strategy.barrier)


@strategies
def test_one_worker_gets_what_the_strategy_asks(make: Make) -> None:
    search, alone = SteadySearch(make()), make()
    proposals = run(search, 1, np.random.default_rng(0))
    evaluated = []
    while batch := alone.ask(1):
        evaluated += batch
        alone.tell(batch[0], {"loss": quality(batch[0])})
    assert proposals == evaluated
    assert search.spares == 0


@strategies
@pytest.mark.parametrize("moment", [1, 20, 33])
def test_a_search_that_was_cut_off_continues_as_it_would_have(make: Make, moment: int) -> None:
    full = run(SteadySearch(make()), 1, np.random.default_rng(0))
    first = run(SteadySearch(make()), 1, np.random.default_rng(0), most=moment + 1)[:moment]
    resumed = SteadySearch(make())
    resumed.load([(a, {"loss": quality(a)}) for a in first])
    assert first + run(resumed, 1, np.random.default_rng(0)) == full


def test_lost_trials_are_handed_out_again_and_spares_are_not() -> None:
    search = SteadySearch(evolution())
    proposals = run(search, 3, np.random.default_rng(0), most=45)
    lost = set(search.running)
    results = [(a, {"loss": quality(a)}) for a in proposals if a not in lost]
    resumed = SteadySearch(evolution())
    resumed.load(results)
    rest = run(resumed, 3, np.random.default_rng(4))
    assert not {a for a, _ in results} & set(rest)
    undisturbed = SteadySearch(evolution())
    run(undisturbed, 1, np.random.default_rng(0))
    assert members(resumed.strategy) == members(undisturbed.strategy)


def test_failures_and_repetitions() -> None:
    search = SteadySearch(evolution())
    first, second = search.next(), search.next()
    assert first is not None
    assert second is not None
    assert search.tell(first, None)
    assert not search.tell(first, {"loss": 0.0})
    assert search.tell(second, {"loss": 1.0})
    assert search.strategy.best() == (second, 1.0)
    with pytest.raises(ArchitectureError):
        search.tell(Architecture({"layers": 77}), {"loss": 1.0})


def test_a_space_that_is_used_up_ends() -> None:
    config = EvolutionConfig(iterations=30, population=10, parents=4)
    search = SteadySearch(HATEvolution(TINY, (), config))
    proposals, running = [], []
    while (architecture := search.next()) is not None:
        proposals.append(architecture)
        running.append(architecture)
        if len(running) == 3:
            done = running.pop(0)
            search.tell(done, {"loss": float(size(TINY, TINY.rows([done]))[0])})
    assert len(proposals) == len(set(proposals))
    assert TINY.cardinality() - 3 <= len(proposals) <= TINY.cardinality()
