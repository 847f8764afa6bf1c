"""A strategy of which many workers have a copy: the results alone decide what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas_core.search import (
    EvolutionConfig,
    HATEvolution,
    RandomConfig,
    RandomSearch,
    RankNAS,
    RankNASConfig,
    Strategy,
)
from nas_core.search.strategies.shared import SharedSearch
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, drive, limit, quality

MADE: dict[str, Callable[[], Strategy]] = {
    "evolution": lambda: HATEvolution(SPACE, limit(3000.0), EvolutionConfig(iterations=4, population=10, parents=4)),
    "ranknas": lambda: RankNAS(
        SPACE,
        limit(3000.0),
        RankNASConfig(samples=12, rounds=2, per_round=5, candidates=50, generations=1, parents=10, children=10),
    ),
    "random": lambda: RandomSearch(SPACE, limit(3000.0), RandomConfig(evaluations=25, batch=8)),
}


class Storage:
    """What workers have in common."""

    def __init__(self) -> None:
        self.results: dict[Architecture, dict[str, Any] | None] = {}
        self.running: list[Architecture] = []
        self.openings: dict[int, tuple[str, ...]] = {}
        self.asked: list[Architecture] = []

    def ask(self, search: SharedSearch) -> Architecture | None:
        rng = np.random.default_rng([1, len(self.asked)])
        result = search.next(self.results, self.running, self.openings, rng)
        self.openings = {**result.opened, **self.openings}
        if result.architecture is not None:
            self.running.append(result.architecture)
            self.asked.append(result.architecture)
        return result.architecture

    def end(self, architecture: Architecture) -> None:
        self.running.remove(architecture)
        self.results[architecture] = {"loss": quality(architecture)}


@pytest.mark.parametrize("name", MADE)
def test_one_worker_asks_for_what_the_strategy_asks_for(name: str) -> None:
    expected = drive(MADE[name](), 25)
    storage, search = Storage(), SharedSearch(MADE[name])
    for _ in expected:
        storage.end(storage.ask(search))
    assert storage.asked == expected


@pytest.mark.parametrize("name", MADE)
def test_workers_that_come_and_go_lose_nothing_and_repeat_nothing(name: str) -> None:
    rng, storage = np.random.default_rng(0), Storage()
    workers = [SharedSearch(MADE[name]) for _ in range(3)]
    for _ in range(60):
        place = int(rng.integers(len(workers)))
        if len(storage.running) < 3:
            assert storage.ask(workers[place]) is not None
        elif rng.random() < 0.1:
            lost = storage.running.pop(0)
            storage.asked.remove(lost)
            workers[place] = SharedSearch(MADE[name])
        else:
            storage.end(storage.running[int(rng.integers(3))])
    assert len(storage.asked) == len(set(storage.asked)) == len(storage.results) + len(storage.running) > 15
    copy = SharedSearch(MADE[name])
    results = [copy.next(storage.results, storage.running, storage.openings, np.random.default_rng(7))]
    results += [
        one.next(storage.results, storage.running, storage.openings, np.random.default_rng(7)) for one in workers
    ]
    assert all(one == results[0] for one in results)
    if name == "evolution":  # learns from members alone: their course is that of one worker
        members = drive(MADE[name](), 25)
        evaluated = [one for one in members if one in storage.results]
        assert evaluated == members[: len(evaluated)] or set(members[:10]) <= set(storage.asked)


def test_what_a_lost_worker_had_comes_next() -> None:
    storage, search = Storage(), SharedSearch(MADE["evolution"])
    first, second = storage.ask(search), storage.ask(search)
    storage.running.remove(first)
    assert storage.ask(search) == first != second


def test_of_two_that_propose_a_generation_the_one_on_record_counts() -> None:
    storage = Storage()
    extra = SPACE.smallest()
    workers = [SharedSearch(MADE["ranknas"]) for _ in range(2)]
    for _ in range(12):
        storage.end(storage.ask(workers[0]))
    rng = np.random.default_rng(0)
    early = workers[0].next(storage.results, [], storage.openings, rng)
    assert list(early.opened) == [1] and early.opened[1] == ()
    storage.results[extra] = {"loss": quality(extra)}
    late = workers[1].next(storage.results, [], storage.openings, rng)
    assert late.opened == {1: (extra.key,)}
    on_record = {**storage.openings, **early.opened}
    after = workers[1].next(storage.results, [], on_record, rng)
    assert after == workers[0].next(storage.results, [], on_record, rng)
    assert after.architecture == early.architecture and not after.opened
