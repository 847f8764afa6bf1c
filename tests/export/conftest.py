"""Exports need onnx and its runtime: what is here is skipped without them."""

from __future__ import annotations

from pathlib import Path

import pytest

for name in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(name, reason=f"{name} is not installed")

from tests.export.exports import exported  # noqa: E402  what it imports needs the packages

__all__ = ["exported"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.onnx)
