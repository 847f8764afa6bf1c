"""When and where a search ran, over its interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.search import RandomConfig, RandomSearch, search
from nas_core.search.sessions import Session, read_sessions
from nas_core.space import Architecture, get_space

SPACE = get_space("hat_small")


class Interrupted(BaseException):
    """As Ctrl-C."""


def run(folder: Path, fail_at: int | None = None) -> Any:
    calls = []

    def evaluate(architecture: Architecture) -> dict[str, float]:
        calls.append(architecture)
        if len(calls) == fail_at:
            raise Interrupted
        return {"loss": 1.0}

    strategy = RandomSearch(SPACE, config=RandomConfig(evaluations=8))
    return search({"all": strategy}, evaluate, folder, progress=False)


def test_each_part_of_an_interrupted_search(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(tmp_path, fail_at=4)
    (first,) = read_sessions(tmp_path)
    assert first["seconds"] >= 0 and first["machine"]["cores"] >= 1 and first["machine"]["cpu"]
    run(tmp_path)
    sessions = read_sessions(tmp_path)
    assert len(sessions) == 2 and sessions[0] == first and sessions[1]["started"] >= first["started"]
    run(tmp_path)  # nothing is evaluated any more
    assert read_sessions(tmp_path) == sessions


@pytest.mark.parametrize("content", ["", "{", "[]", '{"sessions": 3}', '{"sessions": [1, {"started": "x"}]}'])
def test_a_damaged_file_costs_no_search(content: str, tmp_path: Path) -> None:
    (tmp_path / "sessions.json").write_text(content, encoding="utf-8")
    assert read_sessions(tmp_path) == []
    Session(tmp_path).save()
    assert len(read_sessions(tmp_path)) == 1
