"""HAT's evolution: the contract, its procedure, and that it searches better than chance."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.search import EvolutionConfig, HATEvolution, RandomConfig, RandomSearch
from tests.contracts.strategy import SPACE, drive, limit, quality

SMALL = EvolutionConfig(iterations=8, population=50, parents=10)


def test_every_generation_is_scored_and_known_scores_are_not_asked_for() -> None:
    strategy = HATEvolution(SPACE, [limit(3000.0)], SMALL, seed=0)
    proposals = drive(strategy, 10_000)
    assert strategy.finished
    assert strategy.generation == 8
    assert strategy.proposed == 8 * 50  # what HAT would evaluate
    assert strategy.cache_hits == strategy.proposed - len(proposals) >= 7 * 10  # the parents at least
    assert strategy.best() == min(((a, quality(a)) for a in proposals), key=lambda pair: pair[1])


def test_failed_members_have_no_children() -> None:
    config = EvolutionConfig(iterations=2, population=45, parents=5)
    strategy = HATEvolution(SPACE, [], config, seed=0)
    first = strategy.ask(100)
    for index, architecture in enumerate(first):
        strategy.tell(architecture, {"loss": float(index)} if index in (7, 30) else None)
    mutants = config.children // 2
    children, parents = SPACE.rows(strategy.ask(100))[mutants:], SPACE.rows([first[7], first[30]])
    assert len(children) > 10
    assert ((children == parents[0]) | (children == parents[1]) | (children == -1)).all()


@pytest.mark.parametrize("bound", [2200.0, 3000.0])
def test_it_beats_random_search_at_equal_evaluations(bound: float) -> None:
    config = EvolutionConfig(iterations=10, population=50, parents=10)
    evolved, random = [], []
    for seed in range(5):
        strategy = HATEvolution(SPACE, [limit(bound)], config, seed=seed)
        used = len(drive(strategy, 10_000))
        baseline = RandomSearch(SPACE, [limit(bound)], RandomConfig(evaluations=used), seed=seed)
        assert len(drive(baseline, 10_000)) == used
        for losses, name in ((evolved, strategy), (random, baseline)):
            best = name.best()
            assert best is not None
            losses.append(best[1])
    assert np.mean(evolved) < 0.8 * np.mean(random)
    assert max(evolved) < min(random)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({}, (125, 25)),
        ({"population": 30}, (30, 6)),
        ({"population": 30, "parents": 10}, (30, 10)),
        ({"population": 1}, (1, 1)),
    ],
)
def test_a_population_is_shared_out_as_hat_does(given: dict[str, int], parts: tuple[int, ...]) -> None:
    config = EvolutionConfig(iterations=4, **given)
    assert (config.population, config.parents) == parts and config.children == parts[0] - parts[1]
    assert config.iterations == 4
