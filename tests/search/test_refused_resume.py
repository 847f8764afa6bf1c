"""A run folder that cannot be continued is left byte for byte as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, DataError
from nas_core.search import EvolutionConfig
from tests.search.runs import CONFIG, run

OTHER = EvolutionConfig(iterations=3, population=20, parents=5, mutations=8, crossovers=7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def never(architecture: Any) -> dict[str, float]:
    raise AssertionError("nothing may be evaluated")


def duplicated(lines: list[bytes]) -> None:
    lines.insert(40, lines[39])


def missing(lines: list[bytes]) -> None:
    del lines[40]


def exchanged(lines: list[bytes]) -> None:
    lines[40], lines[41] = lines[41], lines[40]


def damaged(lines: list[bytes]) -> None:
    lines[40] = lines[40][:30] + b"\n"


def another(lines: list[bytes]) -> None:
    lines[40] = json.dumps({**json.loads(lines[40]), "genes": {"decoder.layers": 1}}).encode() + b"\n"


def without_metrics(lines: list[bytes]) -> None:
    lines[40] = json.dumps({**json.loads(lines[40]), "metrics": 3}).encode() + b"\n"


def last_twice(lines: list[bytes]) -> None:
    lines.append(lines[-1])


@pytest.mark.parametrize(
    "damage", [duplicated, missing, exchanged, damaged, another, without_metrics, last_twice], ids=lambda f: f.__name__
)
def test_a_journal_that_cannot_be_replayed(whole: Path, tmp_path: Path, damage: Callable[[list[bytes]], None]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) > 60, "the damage must lie behind the first generation"
    damage(lines)
    (folder / "journal.jsonl").write_bytes(b"".join(lines))
    before = content(folder)
    with pytest.raises(DataError, match=r"journal\.jsonl, line (40|41|42|\d\d+) ") as caught:
        run(folder, never)
    assert "\n" not in str(caught.value)
    assert content(folder) == before


def test_other_settings_of_the_strategy(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    for options in ({"config": OTHER}, {"limits": (3000.0,)}, {"settings": {"checkpoint": "other"}}):
        with pytest.raises(ConfigError, match="give the same settings to continue it"):
            run(folder, never, **options)
        assert content(folder) == content(whole)
    assert CONFIG != OTHER


def test_evaluations_without_their_settings(whole: Path, tmp_path: Path) -> None:
    """With the settings lost, evaluations of another checkpoint would pass for those of this one."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    (folder / "config.yaml").unlink()
    before = content(folder)
    with pytest.raises(DataError, match=r"holds evaluations but no config\.yaml"):
        run(folder, never)
    assert content(folder) == before


def test_an_interrupt_while_it_is_read_back_changes_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nas_core.search.journal import Journal

    folder, replay, calls = tmp_path / "run", Journal.replay, []
    shutil.copytree(whole, folder)

    def interrupted(self: Journal, *arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return replay(self, *arguments)

    monkeypatch.setattr(Journal, "replay", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(folder, never)
    assert content(folder) == content(whole)
