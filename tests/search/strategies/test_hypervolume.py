"""Expected hypervolume improvement: the closed form, batches, limits, and what it finds with few evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.search import HypervolumeConfig, HypervolumeSearch, MultiObjectiveEvolution, Strategy
from nas_core.search.registry import config_of, default_strategy
from nas_core.search.strategies.hypervolume import Front
from tests.contracts.strategy import SPACE, TINY, limit, size
from tests.search.strategies.test_multi_objective import drive, hypervolume


def area(points: np.ndarray, reference: np.ndarray) -> float:
    """Return the dominated area by counting cells between all coordinates."""
    x, y = (np.unique(np.append(column, end)) for column, end in zip(points.T, reference, strict=True))
    x, y = x[x <= reference[0]], y[y <= reference[1]]
    dominated = ((points[:, 0, None, None] <= x[:-1, None]) & (points[:, 1, None, None] <= y[None, :-1])).any(0)
    return float((dominated * np.diff(x)[:, None] * np.diff(y)).sum())


@pytest.mark.parametrize("count", [0, 1, 9])
def test_expected_improvement_is_that_of_draws(count: int) -> None:
    stream, reference = np.random.default_rng(count), np.array([1.0, 1.5])
    points = stream.normal(size=(count, 2))
    front = Front(points, reference)
    means, deviations = stream.normal(size=(5, 2)), stream.uniform(0.2, 1.0, (5, 2))
    before = area(points, reference)
    for mean, deviation in zip(means, deviations, strict=True):
        draws = mean + deviation * stream.standard_normal((4000, 2))
        gains = np.array([area(np.concatenate([points, draw[None]]), reference) for draw in draws]) - before
        (expected,) = front.expected_improvement(mean[None], deviation[None])
        assert expected == pytest.approx(gains.mean(), abs=5 * gains.std() / np.sqrt(len(gains)) + 1e-6)


def test_a_certain_result_improves_by_its_area() -> None:
    points, reference = (
        np.array([[0.0, 2.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.5], [2.0, 2.0], [4.0, -1.0]]),
        np.full(2, 3.0),
    )
    front = Front(points, reference)
    assert front.points.tolist() == [[0.0, 2.0], [1.0, 1.0], [2.0, 0.5]]
    candidates = np.array([[0.5, 0.75], [1.5, 1.5], [-1.0, -1.0], [2.5, 0.0]])
    gains = [
        area(np.concatenate([points, candidate[None]]), reference) - area(points, reference) for candidate in candidates
    ]
    assert front.expected_improvement(candidates, np.full((4, 2), 1e-6)) == pytest.approx(gains, abs=1e-5)


def test_few_evaluations_cover_more_than_evolution() -> None:
    """In a space too large to enumerate, after 100 evaluations."""
    for seed in range(2):
        searches: list[Strategy] = [
            HypervolumeSearch(SPACE, config=HypervolumeConfig(candidates=1000), seed=seed),
            MultiObjectiveEvolution(SPACE, config=config_of("multi-objective", {}, 100), seed=seed),
        ]
        ours, evolution = (hypervolume(drive(strategy, 100)) for strategy in searches)
        assert ours > evolution + 0.01


def test_a_small_space_is_scored_as_a_whole() -> None:
    """The front of the architectures within the limit is found in about half of the evaluations."""
    rows = np.unique(TINY.sample_rows(np.random.default_rng(0), 500), axis=0)
    bound = limit(45.0, TINY)

    def metrics(row: np.ndarray) -> tuple[float, float]:
        width = float(size(TINY, row[None])[0])
        return (width - 30.0) ** 2, width % 7

    strategy = HypervolumeSearch(TINY, bound, HypervolumeConfig(evaluations=12, samples=4, per_round=2), seed=0)
    evaluated = set()
    while architectures := strategy.ask(1):
        values = metrics(TINY.rows(architectures)[0])
        strategy.tell(architectures[0], dict(zip(("loss", "latency_ms"), values, strict=True)))
        evaluated.add(architectures[0])
    within = rows[bound.values(rows) <= 45.0]
    assert len(evaluated) == 12 and evaluated <= set(TINY.architectures(within))


def test_results_measured_above_a_limit_are_not_on_the_front() -> None:
    strategy = HypervolumeSearch(SPACE, limit(3000.0), HypervolumeConfig(samples=4, candidates=50), seed=0)
    proposals = strategy.ask(4)
    for architecture, latency_ms in zip(proposals, (3001.0, 2000.0, 2500.0, 4000.0), strict=True):
        strategy.tell(architecture, {"loss": 5000.0 - latency_ms, "latency_ms": latency_ms})
    assert {architecture for architecture, _ in strategy.front()} == set(proposals[1:3])
    assert len(strategy.ask(1)) == 1


def test_equal_results_are_survived() -> None:
    strategy = HypervolumeSearch(SPACE, config=HypervolumeConfig(samples=4, candidates=50), seed=0)
    for _ in range(12):
        (architecture,) = strategy.ask(1)
        strategy.tell(architecture, {"loss": 1.0, "latency_ms": 2.0})


@pytest.mark.parametrize(
    ("evaluations", "front", "name"),
    [(None, False, "ranknas"), (900, False, "evolution"), (None, True, "hypervolume"), (900, True, "multi-objective")],
)
def test_the_default_follows_the_evaluations(evaluations: int | None, front: bool, name: str) -> None:
    assert default_strategy(evaluations, front) == name


def test_many_workers_need_large_generations() -> None:
    assert default_strategy(200, False, workers=16) == "evolution"
