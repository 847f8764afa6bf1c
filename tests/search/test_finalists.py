"""Which architectures are picked at the end, and what is measured of them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from nas_core.latency.by_genes import LinearModel
from nas_core.search import Entry, ParetoArchive
from nas_core.search.finalists import choose_finalists, save_finalists, with_measured, with_measured_before
from nas_core.search.remeasure import remeasure
from nas_core.space import Architecture
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


@pytest.mark.parametrize(("count", "expected"), [(1, 2), (2, 2), (3, 3), (100, 21)])
def test_as_many_as_wanted_if_there_are(count: int, expected: int) -> None:
    archive = front(21)
    best = {"a": archive.entries[0], "b": archive.entries[30]}
    assert len(choose_finalists(best, archive, count)) == expected


def test_the_best_may_lie_off_the_front() -> None:
    off = Entry(Architecture({"n": 99}), {"loss": 50.0, "latency_ms": 50.0})
    assert choose_finalists({"a": off}, front(3), 2)[0].architecture == off.architecture


def test_measurements_are_kept_beside_the_predictions() -> None:
    (finalist,) = with_measured(choose_finalists({}, front(1), 1), [{"latency_ms": 3.0}])
    assert finalist.to_dict()["measured"] == {"latency_ms": 3.0}
    assert finalist.metrics["latency_ms"] == 1


def test_a_model_of_a_published_table_measures_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 60)
    model = LinearModel(SPACE)
    model.fit(rows, 1.0 + SPACE.slots.codes(rows).sum(1))
    with caplog.at_level(logging.WARNING):
        assert remeasure([SPACE.smallest()] * 2, model) == [{}, {}]
    assert "finalists are not measured" in caplog.text


@pytest.mark.parametrize("content", ["[]", "{", "{}", '{"finalists": [1, {"key": "x"}]}'])
def test_a_damaged_list_is_written_anew(tmp_path: Path, content: str) -> None:
    """As the report asks for."""
    chosen = choose_finalists({}, front(3), 2)
    measured = with_measured(chosen, [{"latency_ms": 2.0}, {}])
    save_finalists(tmp_path, measured)
    assert with_measured_before(tmp_path, chosen, {}) == measured
    (tmp_path / "finalists.json").write_text(content, encoding="utf-8")
    assert with_measured_before(tmp_path, chosen, {}) == chosen
