"""Exports that tests of several folders read; a conftest imports the fixture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.export import write_export
from tests.export.tiny import exportable

__all__ = ["exported"]

_made: dict[str, Path] = {}


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``exported(name)``: the folder of a model of ``tiny.MODELS``, made once whichever folder asks first."""

    def folder(name: str) -> Path:
        if name not in _made:
            _made[name] = tmp_path_factory.mktemp("exports") / name
            written = write_export(exportable(name)[0], _made[name])
            assert 0 <= max(written.differences.values()) < 1e-5
        return _made[name]

    return folder
