"""Evolution of a front: the contract, sorting, and that it finds better trade-offs than chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nas_core.errors import NasExtError
from nas_core.search import (
    MultiObjectiveConfig,
    MultiObjectiveEvolution,
    RandomConfig,
    RandomSearch,
    Strategy,
    search,
)
from nas_core.search.strategies.multi_objective import best_first, crowding, fronts
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, limit

SMALL = MultiObjectiveConfig(iterations=10, population=40)
REFERENCE = (20.0, 42.0)
"""Worse than any architecture in both metrics."""


def metrics(architecture: Architecture) -> dict[str, float]:
    """Two objectives at odds in every gene, which weigh in one what they do not in the other."""
    codes = SPACE.encode(architecture, "layers")[0].astype(np.float64)
    weights = np.linspace(0.2, 3.0, len(codes))
    return {"loss": float(((1 - codes) ** 2 * weights[::-1]).sum()), "latency_ms": float((codes * weights).sum())}


def drive(strategy: Strategy, evaluations: int) -> list[dict[str, float]]:
    results = []
    while len(results) < evaluations and (proposals := strategy.ask(1)):
        results.append(metrics(proposals[0]))
        strategy.tell(proposals[0], results[-1])
    return results


def hypervolume(results: Sequence[dict[str, float]]) -> float:
    """Area that is dominated below :data:`REFERENCE`, as a share of all of it."""
    area, left = 0.0, REFERENCE[1]
    for loss, latency in sorted((m["loss"], m["latency_ms"]) for m in results):
        if loss < REFERENCE[0] and latency < left:
            area += (REFERENCE[0] - loss) * (left - latency)
            left = latency
    return area / (REFERENCE[0] * REFERENCE[1])


def dominates(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a <= b).all() and (a < b).any())


def test_fronts_are_those_of_the_definition() -> None:
    stream = np.random.default_rng(0)
    for objectives in (1, 2, 3):
        values = stream.integers(0, 6, (60, objectives)).astype(float)  # many are equal
        left, level = set(range(60)), 0
        ranks = fronts(values, np.zeros(60))
        while left:
            first = {i for i in left if not any(dominates(values[j], values[i]) for j in left)}
            assert {i for i in range(60) if ranks[i] == level} == first
            left, level = left - first, level + 1


def test_violations_come_after_what_is_within_the_limits() -> None:
    values = np.array([[9.0, 9.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0], [8.0, 8.0]])
    outside = np.array([0.0, 0.2, 0.5, 0.2, 0.0])
    assert fronts(values, outside).tolist() == [1, 2, 4, 3, 0]
    assert best_first(values, outside).tolist() == [4, 0, 1, 3, 2]


def test_the_loneliest_of_a_front_come_first() -> None:
    values = np.array([[0.0, 10.0], [1.0, 9.0], [1.5, 8.0], [6.0, 2.0], [10.0, 0.0]])
    distance = crowding(values)
    assert np.isinf(distance[[0, 4]]).all()
    assert distance[1:4].tolist() == pytest.approx([0.15 + 0.2, 0.5 + 0.7, 0.85 + 0.8])
    assert best_first(values, np.zeros(5)).tolist() == [0, 4, 3, 2, 1]
    assert crowding(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]


def test_it_covers_more_than_random_search_with_equal_evaluations() -> None:
    for seed in range(3):
        strategy = MultiObjectiveEvolution(SPACE, [], SMALL, seed=seed)
        result = drive(strategy, 400)
        assert len(result) == strategy.budget == 400
        random = drive(RandomSearch(SPACE, [], RandomConfig(evaluations=2000), seed=seed), 2000)
        assert hypervolume(result) > hypervolume(random[:400]) + 0.02
        assert hypervolume(result) > hypervolume(random)  # five times as many
        front = np.array([vector for _, vector in strategy.front()])
        values = np.array([[m["loss"], m["latency_ms"]] for m in result])
        assert len(front) > 20
        assert not any(dominates(other, member) for member in front for other in values)


def test_measured_violations_are_ranked_behind() -> None:
    strategy = MultiObjectiveEvolution(SPACE, [limit(3000.0)], SMALL, seed=0)
    proposals = strategy.ask(40)
    for index, architecture in enumerate(proposals):
        measured = 2999.0 if index < 10 else 3001.0 + index
        strategy.tell(architecture, {"loss": 50.0 - index, "latency_ms": measured})
    assert strategy.best() == (proposals[9], 41.0)
    assert [architecture for architecture, _ in strategy.front()] == [proposals[9]]
    strategy.ask(1)
    rows = strategy._rows(strategy._parents)  # private: parents are shown to nobody
    parents = strategy.space.architectures(rows)
    assert set(parents[:10]) == set(proposals[:10]) and parents[10:] == proposals[10:]


def test_a_result_without_an_objective_is_a_failure(tmp_path: Path) -> None:
    strategy = MultiObjectiveEvolution(SPACE, [], SMALL, seed=0)
    (architecture,) = strategy.ask(1)
    strategy.tell(architecture, {"loss": 1.0})
    assert strategy.best() is None and strategy.front() == []
    repeated = MultiObjectiveEvolution(SPACE, [], SMALL, seed=0)
    with pytest.raises(NasExtError, match="latency_ms is missing"):
        search({"all": repeated}, lambda _: {"loss": 1.0}, tmp_path, progress=False)


def test_a_run_keeps_the_front_of_its_objectives(tmp_path: Path) -> None:
    strategy = MultiObjectiveEvolution(SPACE, [], SMALL, seed=0)
    result = search({"all": strategy}, metrics, tmp_path, finalists=5, progress=False)
    assert result.archive.objectives == ("loss", "latency_ms")
    vectors = sorted({result.archive.vector(entry.metrics) for entry in result.archive})
    assert vectors == sorted({vector for _, vector in strategy.front()})
    assert len(result.finalists) == 5 and result.best_by_search["all"].metrics["loss"] == vectors[0][0]
