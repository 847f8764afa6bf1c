"""Exports that the tests of this folder read, each made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.export.tiny import exports


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``exported(name)``: the folder of a model of ``tiny.MODELS``."""
    return exports(tmp_path_factory.mktemp("exports"))
