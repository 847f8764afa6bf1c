"""Results of searches over NNI's model spaces: told, replayed, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.files.journal import read_jsonl
from nas_core.search import EvolutionConfig, HATEvolution
from nni_ext.nas.evaluations import Evaluations, reported_number
from nni_ext.nas.spaces import flat_space
from nni_ext.record import Record

SMALL = EvolutionConfig(iterations=3, population=6, parents=3, mutations=2, crossovers=1)


def evaluations() -> Evaluations:
    flat = flat_space("x", {"a": [1, 2, 3, 4], "b": [(1, 1), (2, 2)], "c": ["p", "q", "r"]})
    return Evaluations(HATEvolution(flat.space, (), SMALL, metric="-metric"), flat, (), True)


def fed(one: Evaluations, results: int = 99) -> Evaluations:
    """Told ``results`` results, each third of them a failure."""
    while len(one.entries) < results and (asked := one.search.ask(1)):
        one.tell(asked[0], asked[0]["a"] + len(asked[0]["b"]) if len(one.entries) % 3 else None)  # type: ignore[arg-type, operator]
    return one


@pytest.mark.parametrize(
    ("reported", "number"),
    [(1, 1.0), ("0.5", 0.5), ({"default": 2, "latency": 3}, 2.0), ({"latency": 3}, None), (None, None), ("bad", None),
     (float("nan"), None), (float("inf"), None), ([1], None)],
)  # fmt: skip
def test_reported_number(reported: Any, number: float | None) -> None:
    assert reported_number(reported) == number


def test_larger_metrics_are_better() -> None:
    one = fed(evaluations())
    best = one.best()
    assert best is not None and best.metric == max(entry.metric for entry in one.entries if entry.metric is not None)
    found = one.search.best()
    assert found is not None and found[1] == -best.metric
    one.tell(best.architecture, -5)
    assert one.best() == best and len(one.entries) == len({entry.architecture for entry in one.entries})


@pytest.mark.parametrize("missing", [0, 4])
def test_replayed_in_any_order(missing: int) -> None:
    whole = fed(evaluations())
    known = {entry.architecture: entry.metric for entry in reversed(whole.entries)}
    lost = whole.entries[missing].architecture
    again = evaluations()
    again.replay({architecture: metric for architecture, metric in known.items() if architecture != lost})
    asked = again.search.ask(1)
    assert asked == [lost]
    again.tell(lost, known[lost])
    assert not again.search.ask(1) and again.search.finished
    assert {entry.architecture: entry.metric for entry in again.entries} == known


def test_a_record_gets_what_was_there_before_it(tmp_path: Path) -> None:
    one = fed(evaluations(), 4)
    one.keep_in(Record(tmp_path, one.search))
    fed(one)
    lines = read_jsonl(tmp_path / "journal.jsonl")
    assert [line["key"] for line in lines] == [entry.architecture.key for entry in one.entries]
    assert [line["metrics"]["-metric"] for line in lines] == [
        None if entry.metric is None else -entry.metric for entry in one.entries
    ]
    again = evaluations()
    again.keep_in(Record(tmp_path, again.search))
    assert again.entries == one.entries and again.search.finished
    assert read_jsonl(tmp_path / "journal.jsonl") == lines
