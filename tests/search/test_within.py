"""The best of a limit is one that was measured within it, or none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nas_core.search import Entry, HATEvolution, ParetoArchive, SearchResult
from nas_core.search.finalists import Finalist, save_finalists, with_measured_before
from nas_core.search.within import TRIES, Goal, goals, judged, measure_finalists
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, limit

NAME = "latency_ms<=25"
GOALS = {NAME: Goal("loss", {"latency_ms": 25.0})}


def network(index: int) -> Architecture:
    return Architecture({"n": index})


def evaluated(count: int) -> dict[Architecture, dict[str, float]]:
    """Slower ones are better: of 25.5 ms less so many, with losses from 1 up."""
    return {network(index): {"loss": 1.0 + index, "latency_ms": 25.5 - index} for index in range(count)}


def finalist(index: int, best_of: tuple[str, ...] = (), **measured: Any) -> Finalist:
    record = {"same_machine": True, **measured} if measured else {}
    return Finalist(network(index), evaluated(index + 1)[network(index)], best_of, record)


def result(finalists: Sequence[Finalist], count: int = 20) -> SearchResult:
    archive = ParetoArchive(["loss", "latency_ms"])
    return SearchResult(archive, {}, list(finalists), count, 0, 0, evaluated(count))


class Device:
    """Measures what was predicted, by a factor."""

    def __init__(self, factor: float) -> None:
        self.factor, self.asked = factor, list[Architecture]()

    def __call__(self, architectures: Sequence[Architecture]) -> list[Mapping[str, Any]]:
        self.asked += architectures
        predicted = evaluated(20)
        return [
            {"latency_ms": predicted[one]["latency_ms"] * self.factor, "same_machine": True} for one in architectures
        ]


def marks(finalists: Sequence[Finalist]) -> dict[int, tuple[bool, bool]]:
    """Place in the list of architectures -> (best of the limit, above it)."""
    return {one.architecture.number("n"): (NAME in one.best_of, NAME in one.over_limit) for one in finalists}


def test_the_next_best_is_measured_where_the_best_is_above() -> None:
    """Predicted 24.5 ms are 25.7 ms: 5 % too little; the next one is the best of those 5 % further below."""
    device = Device(1.05)
    found = measure_finalists(result([finalist(1, (NAME,)), finalist(8)]), GOALS, device)
    assert [one.number("n") for one in device.asked] == [1, 8, 2]
    assert marks(found) == {1: (False, True), 8: (False, False), 2: (True, False)}
    assert found[-1].measured["latency_ms"] <= 25.0
    assert found[-1].to_dict()["best_of"] == [NAME] and found[0].to_dict()["over_limit"] == [NAME]


def test_predictions_that_hold_are_left_alone() -> None:
    device = Device(1.01)
    found = measure_finalists(result([finalist(1, (NAME,)), finalist(8)]), GOALS, device)
    assert len(device.asked) == 2 and marks(found) == {1: (True, False), 8: (False, False)}
    assert measure_finalists(result(found), GOALS, device) == found and len(device.asked) == 2


def test_nothing_within_is_said_and_not_called_the_best() -> None:
    class Slow(Device):
        def __call__(self, architectures: Sequence[Architecture]) -> list[Mapping[str, Any]]:
            self.asked += architectures
            return [{"latency_ms": 25.1 + len(self.asked) / 10, "same_machine": True} for _ in architectures]

    device = Slow(1.0)
    found = measure_finalists(result([finalist(1, (NAME,))]), GOALS, device)
    assert len(device.asked) == 1 + TRIES == len(found)
    assert set(marks(found).values()) == {(False, True)}
    assert measure_finalists(result(found), GOALS, device) == found and len(device.asked) == 1 + TRIES


def test_many_finalists_above_do_not_end_the_tries() -> None:
    """All of a spread over the front are measured above the limit, more than there are tries."""
    device = Device(1.3)
    found = measure_finalists(result([finalist(1, (NAME,)), *map(finalist, (2, 3, 4, 5))]), GOALS, device)
    assert [one.number("n") for one in device.asked] == [1, 2, 3, 4, 5, 7]
    assert marks(found)[7] == (True, False) and not any(best for best, above in marks(found).values() if above)


def test_what_is_left_is_only_worse_than_a_finalist_within() -> None:
    """All others are predicted too close to the limit, or are worse than the one that was measured within it."""
    device = Device(1.05)
    found = measure_finalists(result([finalist(1, (NAME,)), finalist(2)]), GOALS, device)
    assert len(device.asked) == 2 and marks(found) == {1: (False, True), 2: (True, False)}


@pytest.mark.parametrize("record", [{}, {"latency_ms": 30.0, "same_machine": False}])
def test_another_machine_and_none_say_nothing_of_the_limit(record: dict[str, Any]) -> None:
    found = measure_finalists(result([finalist(1, (NAME,))]), GOALS, lambda some: [record for _ in some])
    assert marks(found) == {1: (True, False)}


def test_each_search_has_its_own_best() -> None:
    other = "latency_ms<=30"
    both = {**GOALS, other: Goal("loss", {"latency_ms": 30.0})}
    first = finalist(1, (NAME, other), latency_ms=26.0)
    found = judged([first, finalist(3, latency_ms=24.0)], both)
    assert [one.best_of for one in found] == [(other,), (NAME,)]
    assert [one.over_limit for one in found] == [(NAME,), ()]
    assert judged(found, both) == found


def test_what_was_measured_before_stays(tmp_path: Path) -> None:
    chosen = [finalist(1, (NAME,)), finalist(8)]
    found = measure_finalists(result(chosen), GOALS, Device(1.05))
    save_finalists(tmp_path, found)
    again = judged(with_measured_before(tmp_path, chosen, evaluated(20)), GOALS)
    assert again == found
    assert [one.architecture for one in with_measured_before(tmp_path, chosen, {})] == [network(1), network(8)]


def test_goals_are_those_of_the_strategies() -> None:
    found = goals({"a": HATEvolution(SPACE, [limit(25.0)]), "b": HATEvolution(SPACE)})
    assert found == {"a": GOALS[NAME], "b": Goal("loss", {})}
    entry = Entry(network(0), {"loss": 1.0})
    assert found["b"].allows(entry.metrics) and not found["a"].allows(entry.metrics)
