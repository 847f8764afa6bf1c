"""Run folders whose files somebody edited or a disk damaged: one line says what, or what is no loss is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nas_core.errors import ArchitectureError, DataError
from nas_core.report import read_run, write_report
from nas_core.report.search.evaluations import importance
from nas_core.report.search.pruning import genes_tables
from nas_core.search.finalists import finalists_before, with_measured_before
from nas_core.search.sessions import read_sessions
from nas_core.space import get_space, space_to_dict

GOOD = {"search": "unlimited", "key": "a", "metrics": {"loss": 1.0, "top1": None}, "genes": {"x": [1, 2], "y": "b"}}
FINALIST = {"key": "a", "metrics": {"loss": 1.0, "latency_ms": 2.0}, "genes": {"x": 1}}


def folder(path: Path, *, config: Any = None, finalists: Any = None, **changes: Any) -> Path:
    """A run of one evaluation, which is changed; Python's JSON writes NaN as people's tools do."""
    (path / "journal.jsonl").write_text(json.dumps({**GOOD, **changes}) + "\n", encoding="utf-8")
    if config is not None:
        (path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    if finalists is not None:
        (path / "finalists.json").write_text(json.dumps({"finalists": finalists}), encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_run(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"genes": {"x": float("nan")}}, {"genes": {"x": [1, float("inf")]}}, {"genes": None}, {"genes": [1]},
        {"metrics": {"loss": "low"}}, {"metrics": None}, {"error": float("nan")},
    ],
)  # fmt: skip
def test_evaluations(changes: dict[str, Any], tmp_path: Path) -> None:
    assert "journal.jsonl, line 1 is no evaluation of a search; expected" in refused(folder(tmp_path, **changes))


def test_lists_inside_lists_are_shown(tmp_path: Path) -> None:
    assert write_report(folder(tmp_path, genes={"x": [[1], [2]], "y": [["a"], "linear"]})).exists()


def test_evaluations_without_genes_are_of_no_space(tmp_path: Path) -> None:
    path = folder(tmp_path, config={"settings": {"space": space_to_dict(get_space("hat_small"))}})
    line = json.dumps({name: value for name, value in GOOD.items() if name != "genes"})
    (path / "journal.jsonl").write_text(f"{line}\n" * 12, encoding="utf-8")
    with pytest.raises(ArchitectureError):
        importance(read_run(path))


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"notes": {"units": ["ms"]}}, "notes.units is ['ms']; expected a unit for each metric"),
        ({"notes": {"units": "ms"}}, "notes.units is 'ms'"),
        ({"notes": {"experiment": "mine"}}, "notes.experiment is 'mine'; expected its name and id"),
        ({"settings": {"objectives": 3}}, "settings.objectives is 3; expected a list"),
        ({"settings": {"objectives": None}}, "settings.objectives is None"),
        ({"settings": {"space": "x"}}, "settings.space is 'x'; expected"),
        ({"settings": {"searches": [1]}}, "settings.searches does not say what searched"),
        ({"settings": {"searches": {"a": {"constraints": {"latency_ms": "low"}}}}}, "constraints of search 'a' are"),
        ({"settings": {"searches": {"a": {"constraints": 3}}}}, "constraints of search 'a' are 3"),
    ],
)
def test_settings_and_notes(config: Any, what: str, tmp_path: Path) -> None:
    message = refused(folder(tmp_path, config=config))
    assert f"config.yaml: {what}" in message and "restore the file" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"over_limit": None}, {"best_of": 3}, {"best_of": [3]}, {"measured": "x"}, {"genes": None}, {"key": ["a"]},
        {"measured": {"latency_ms": "fast"}}, {"metrics": {"loss": "low"}},
    ],
)  # fmt: skip
def test_finalists(changes: dict[str, Any], tmp_path: Path) -> None:
    assert "lists no finalists; run the search again" in refused(folder(tmp_path, finalists=[{**FINALIST, **changes}]))


def test_finalists_that_are_no_list(tmp_path: Path) -> None:
    assert "lists no finalists" in refused(folder(tmp_path, finalists=3))


def test_latencies_that_are_not_finite_stand_in_no_figure(tmp_path: Path) -> None:
    measured = [{"latency_ms": float("nan")}, {"latency_ms": 3.0}, {}]
    run = read_run(folder(tmp_path, finalists=[{**FINALIST, "measured": one} for one in measured]))
    assert run.agreement() == ([2.0], [3.0])


@pytest.mark.parametrize("entry", [{"key": "a", "measured": "x"}, {"key": ["a"]}, {"key": "a", "measured": [1]},
                                   {"key": "a", "measured": {"latency_ms": "fast"}}])  # fmt: skip
def test_what_an_earlier_end_measured_is_ignored_if_damaged(entry: dict[str, Any], tmp_path: Path) -> None:
    folder(tmp_path, finalists=[entry])
    assert finalists_before(tmp_path) == [] and with_measured_before(tmp_path, [], {}) == []


@pytest.mark.parametrize("seconds", ["NaN", "1e400", "-1", '"3"'])
def test_sessions_of_no_length_are_left_out(seconds: str, tmp_path: Path) -> None:
    sessions = ", ".join(f'{{"started": "", "seconds": {s}, "machine": {{}}}}' for s in (seconds, "5"))
    (tmp_path / "sessions.json").write_text(f'{{"sessions": [{sessions}]}}', encoding="utf-8")
    assert [session["seconds"] for session in read_sessions(tmp_path)] == [5]


def test_numbers_of_hundreds_of_digits_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "sessions.json").write_text(f'{{"sessions": [{{"seconds": {"9" * 400}}}]}}', encoding="utf-8")
    assert read_sessions(tmp_path) == []
    assert "line 1 is not a JSON object (a number of 401 digits" in refused(folder(tmp_path, metrics={"loss": 10**400}))


@pytest.mark.parametrize("value", ["high", None, [1], {}])
def test_importance_that_is_no_number_is_not_shown(value: Any, tmp_path: Path) -> None:
    good = {"importance": {"loss": {"x": 0.5}}, "free_genes": ["x"]}
    damaged = {"importance": {"loss": {"x": 0.5, "y": value}}, "free_genes": ["x"]}
    (tmp_path / "state.json").write_text(json.dumps({"searches": {"a": good, "b": damaged}}), encoding="utf-8")
    assert list(genes_tables(tmp_path)) == ["a"]
