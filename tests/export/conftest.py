"""Exports that all tests of this folder read, each made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.export import write_export
from tests.export.tiny import exportable

for name in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(name, reason=f"{name} is not installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.onnx)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``exported(name)``: the folder of a model of ``tiny.MODELS``."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("exports") / name
            written = write_export(exportable(name)[0], made[name])
            assert 0 <= max(written.differences.values()) < 1e-5
        return made[name]

    return folder
