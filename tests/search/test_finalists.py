"""Finalists: their choice, measurements against the limits, and files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.linear import LinearModel
from nas_core.search import ParetoArchive
from nas_core.search.finalists import (
    BEST,
    TRIES,
    Finalist,
    Goal,
    choose_finalists,
    load_architecture,
    measure_finalists,
    restore_measurements,
    save_finalists,
    select_best,
)
from nas_core.search.remeasure import remeasure
from nas_core.space import Architecture
from tests.cli.searching import SPACE as SMALL_SPACE
from tests.cli.searching import latency_model
from tests.contracts.strategy import SPACE


def front(count: int) -> ParetoArchive:
    archive = ParetoArchive(["loss", "latency_ms"])
    for index in range(count):
        for twin in range(2):  # equally good ones
            archive.add(Architecture({"n": index, "twin": twin}), {"loss": index, "latency_ms": count - index})
    return archive


def test_the_best_come_first_then_a_spread_over_the_front() -> None:
    archive = front(21)
    best = {"tight": archive.entries[20], "loose": archive.entries[0], "looser": archive.entries[0]}
    chosen = choose_finalists(best, archive, 6)
    assert [finalist.best_of for finalist in chosen] == [("tight",), ("loose", "looser"), (), (), (), ()]
    assert [finalist.metrics["loss"] for finalist in chosen] == [10, 0, 1, 7, 14, 20]
    assert len({tuple(finalist.metrics.values()) for finalist in chosen}) == 6


def test_a_model_of_a_published_table_measures_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 60)
    model = LinearModel(SPACE)
    model.fit(rows, 1.0 + SPACE.slots.codes(rows).sum(1))
    with caplog.at_level(logging.WARNING):
        assert remeasure([SPACE.smallest()] * 2, model) == [{}, {}]
    assert "finalists are not measured" in caplog.text


def test_finalists_are_not_measured_without_the_device_of_the_model(tmp_path: Path, caplog: Any) -> None:
    model = load_latency_model(latency_model(tmp_path / "latency.json"), "genes", SMALL_SPACE)
    model.info["settings"]["timing"] |= {"device": "cuda:77"}
    assert remeasure([SMALL_SPACE.smallest()], model) == [{}]
    assert "device 'cuda:77' is not usable here" in caplog.text
    model.info["settings"]["timing"] |= {"device": "cpu", "precision": "bf16"}
    (record,) = remeasure([SMALL_SPACE.smallest()], model)
    assert record["precision"] == "bf16" and record["raw_ms"] > 0


@pytest.mark.parametrize("content", ["[]", "{"])
def test_damaged_files_of_finalists_are_replaced(tmp_path: Path, content: str) -> None:
    chosen = choose_finalists({}, front(3), 2)
    measured = [Finalist(chosen[0].architecture, chosen[0].metrics, (), {"latency_ms": 2.0}), chosen[1]]
    save_finalists(tmp_path, measured)
    assert restore_measurements(tmp_path, chosen, {}) == measured
    (tmp_path / "finalists.json").write_text(content, encoding="utf-8")
    assert restore_measurements(tmp_path, chosen, {}) == chosen


NAME = "latency_ms<=25"
GOALS = {NAME: Goal("loss", {"latency_ms": 25.0})}


def network(index: int) -> Architecture:
    return Architecture({"n": index})


def evaluated(count: int) -> dict[Architecture, dict[str, float]]:
    """Slower ones are better: of 25.5 ms minus their index, with losses from 1 up."""
    return {network(index): {"loss": 1.0 + index, "latency_ms": 25.5 - index} for index in range(count)}


def finalist(index: int, best_of: tuple[str, ...] = (), **measured: Any) -> Finalist:
    record = {"same_machine": True, **measured} if measured else {}
    return Finalist(network(index), evaluated(index + 1)[network(index)], best_of, record)


def measured(finalists: Sequence[Finalist], device: Any) -> list[Finalist]:
    return measure_finalists(finalists, evaluated(20), GOALS, device)


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
    results = measured([finalist(1, (NAME,)), finalist(8)], device)
    assert [one.number("n") for one in device.asked] == [1, 8, 2]
    assert marks(results) == {1: (False, True), 8: (False, False), 2: (True, False)}
    assert results[-1].measured["latency_ms"] <= 25.0
    assert results[-1].to_dict()["best_of"] == [NAME] and results[0].to_dict()["over_limit"] == [NAME]


def test_predictions_that_hold_are_left_alone() -> None:
    device = Device(1.01)
    results = measured([finalist(1, (NAME,)), finalist(8)], device)
    assert len(device.asked) == 2 and marks(results) == {1: (True, False), 8: (False, False)}
    assert measured(results, device) == results and len(device.asked) == 2


def test_nothing_within_is_said_and_not_called_the_best() -> None:
    class Slow(Device):
        def __call__(self, architectures: Sequence[Architecture]) -> list[Mapping[str, Any]]:
            self.asked += architectures
            return [{"latency_ms": 25.1 + len(self.asked) / 10, "same_machine": True} for _ in architectures]

    device = Slow(1.0)
    results = measured([finalist(1, (NAME,))], device)
    assert len(device.asked) == 1 + TRIES == len(results)
    assert set(marks(results).values()) == {(False, True)}
    assert measured(results, device) == results and len(device.asked) == 1 + TRIES


def test_many_finalists_above_do_not_end_the_tries() -> None:
    """All of a spread over the front are measured above the limit, more than there are tries."""
    device = Device(1.3)
    results = measured([finalist(1, (NAME,)), *map(finalist, (2, 3, 4, 5))], device)
    assert [one.number("n") for one in device.asked] == [1, 2, 3, 4, 5, 7]
    assert marks(results)[7] == (True, False) and not any(best for best, above in marks(results).values() if above)


@pytest.mark.parametrize("record", [{}, {"latency_ms": 30.0, "same_machine": False}])
def test_another_machine_and_none_say_nothing_of_the_limit(record: dict[str, Any]) -> None:
    results = measured([finalist(1, (NAME,))], lambda some: [record for _ in some])
    assert marks(results) == {1: (True, False)}


def test_each_search_has_its_own_best() -> None:
    other = "latency_ms<=30"
    goals = {**GOALS, other: Goal("loss", {"latency_ms": 30.0})}
    first = finalist(1, (NAME, other), latency_ms=26.0)
    results = select_best([first, finalist(3, latency_ms=24.0)], goals)
    assert [one.best_of for one in results] == [(other,), (NAME,)]
    assert [one.over_limit for one in results] == [(NAME,), ()]
    assert select_best(results, goals) == results


def test_the_best_architecture_of_one_search_is_a_file(tmp_path: Path) -> None:
    above = [replace(finalist(index), over_limit=(NAME,)) for index in (1, 2)]
    for finalists, best in [
        ([above[0], finalist(3, (NAME,)), finalist(8)], 3),
        (above, 1),
        ([finalist(1, (NAME,)), finalist(8, ("other",))], None),
        ([finalist(1, (NAME, "other"))], None),
    ]:
        save_finalists(tmp_path, finalists)
        if best is None:
            with pytest.raises(DataError, match="several limits"):
                load_architecture(tmp_path / BEST)
        else:
            assert load_architecture(tmp_path / BEST) == network(best)


def test_what_was_measured_before_stays(tmp_path: Path) -> None:
    chosen = [finalist(1, (NAME,)), finalist(8)]
    result = measured(chosen, Device(1.05))
    save_finalists(tmp_path, result)
    repeated = select_best(restore_measurements(tmp_path, chosen, evaluated(20)), GOALS)
    assert repeated == result
    assert [one.architecture for one in restore_measurements(tmp_path, chosen, {})] == [network(1), network(8)]
