"""Exports that all tests of this folder read, each made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.export.tiny import exports

for name in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(name, reason=f"{name} is not installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.onnx)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``exported(name)``: the folder of a model of ``tiny.MODELS``."""
    return exports(tmp_path_factory.mktemp("exports"))
