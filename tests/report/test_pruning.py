"""Which genes RankNAS has left free, from what a run tells of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.report.search.pruning import genes_tables

IMPORTANCE = {"loss": {"depth": 0.7, "width": 0.1}, "latency_ms": {"width": 0.8, "depth": 0.2, "heads": 0.01}}


def state(folder: Path, entry: Any) -> Path:
    (folder / "state.json").write_text(json.dumps({"searches": {"latency_ms<=8": entry}}))
    return folder


def test_genes_come_by_what_they_matter_to(tmp_path: Path) -> None:
    tables = genes_tables(state(tmp_path, {"importance": IMPORTANCE, "free_genes": ["depth", "width"]}))
    assert list(tables) == ["latency_ms<=8"]
    assert tables["latency_ms<=8"].cells() == [
        ["width", "0.10", "0.80", "free"],
        ["depth", "0.70", "0.20", "free"],
        ["heads", "-", "0.01", "set to the preferred option"],
    ]


@pytest.mark.parametrize(
    "entry", [{}, None, {"importance": {}}, {"importance": {"loss": 3}, "free_genes": []}, {"importance": IMPORTANCE}]
)
def test_other_searches_tell_nothing(tmp_path: Path, entry: Any) -> None:
    assert genes_tables(state(tmp_path, entry)) == {}


@pytest.mark.parametrize("content", ["{half wri", "[]", '{"searches": 3}'])
def test_a_state_half_written_tells_nothing(tmp_path: Path, content: str) -> None:
    assert genes_tables(tmp_path) == {}
    (tmp_path / "state.json").write_text(content)
    assert genes_tables(tmp_path) == {}
