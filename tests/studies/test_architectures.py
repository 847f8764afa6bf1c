"""Architectures that a study compares: named ones of a space, random ones, or files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.studies.base import ArchitecturesConfig, middle, random_architectures, select_architectures
from tests.studies.trainers import SPACE


def test_architectures_that_are_compared() -> None:
    assert middle(SPACE) == Architecture({"width": 2})
    result = select_architectures(SPACE, ArchitecturesConfig(random=5))
    assert list(result) == ["smallest", "middle", "largest"]  # there are no others
    assert (
        len(random_architectures(SPACE, 2, 0)) == 2 and len(random_architectures(SPACE, 9, 0, [SPACE.smallest()])) == 2
    )


def test_files_are_the_architectures(tmp_path: Path) -> None:
    SPACE.largest().save(tmp_path / "mine.json")
    assert select_architectures(SPACE, ArchitecturesConfig(arch=(tmp_path / "mine.json",))) == {"mine": SPACE.largest()}
    with pytest.raises(ConfigError, match="expected at least 2"):
        select_architectures(SPACE, ArchitecturesConfig(arch=(tmp_path / "mine.json",)), at_least=2)
