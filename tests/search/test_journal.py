"""The journal of a search by itself, and the settings that stand beside it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import yaml

from nas_core.search.journal import Journal, plain_metrics, settle_config
from nas_core.space import Architecture

FIRST, SECOND = Architecture({"n": 1, "w": [1, 2]}), Architecture({"n": 2, "w": [3]})
SETTINGS = {"space": "toy", "searches": {"b": {"seed": 1}, "a": {"seed": 2}}}


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path: Path) -> Path:
    with Journal(path) as journal:
        journal.append("a", FIRST, {"loss": 1.5, "params_m": None})
        journal.append("b", SECOND, {"loss": 2.0}, "out of memory")
        assert (journal.written, journal.replayed, journal.replaying) == (2, 0, False)
    return path


def test_metrics_are_sorted_numbers_or_nothing() -> None:
    given = {"z": 1, "b": "2.5", "c": math.nan, "d": -math.inf, "e": None, "f": "slow", "a": True}
    plain = plain_metrics(given)
    assert plain == {"a": 1.0, "b": 2.5, "c": None, "d": None, "e": None, "f": None, "z": 1.0}
    assert plain_metrics({"z": 1, "a": 2}) == {"a": 2.0, "z": 1.0}
    assert list(plain_metrics({"z": 1, "a": 2})) == ["a", "z"]


def test_what_is_there_is_replayed_and_then_gone_on_with(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.jsonl")
    with Journal(path) as journal:
        assert journal.replaying
        assert journal.replay("a", FIRST) == {"loss": 1.5, "params_m": None}
        assert journal.replaying and journal.replayed == 1
        assert journal.replay("b", SECOND) == {"loss": 2.0}
        assert not journal.replaying
        assert journal.replay("a", FIRST) is None
        assert (journal.replayed, journal.written) == (2, 0)
        journal.require_replayed()
        journal.append("a", SECOND, {"loss": 0.5})
    assert [record["index"] for record in records(path)] == [0, 1, 2]


def test_settings_are_written_once_and_compared_after(tmp_path: Path) -> None:
    path = tmp_path / "run" / "search.yaml"
    assert settle_config(path, SETTINGS, {"release": "1"}) is False
    text = path.read_text()
    content = yaml.safe_load(text)
    assert content == {"format": "nas-ext/search", "version": 1, "settings": SETTINGS, "notes": {"release": "1"}}
    assert list(content) == ["format", "version", "settings", "notes"]
    assert list(content["settings"]["searches"]) == ["b", "a"]
    assert settle_config(path, SETTINGS, {"release": "2"}) is True
    assert path.read_text() == text
