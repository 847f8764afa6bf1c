"""The benchmark of image updates at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("timm")

from benchmarks.supernet import image_update
from nas_core.files.reading import read_json


def test_rows_have_figures_or_a_note(tmp_path: Path) -> None:
    out = tmp_path / "image_update.json"
    image_update.main(["--device", "cpu", "--small", "--precisions", "fp32", "tf32", "--out", str(out)])
    content = read_json(out)
    assert [(row["what"], row["network"]) for row in content["rows"][::2]] == list(image_update.CASES)
    assert all(row["ms"] > 0 and row["images_per_s"] > 0 for row in content["rows"] if row["precision"] == "fp32")
    assert all("NVIDIA" in row["note"] for row in content["rows"] if row["precision"] == "tf32")
    assert content["machine"]["device_name"] and content["model"] == "mformer_cifar10_small_supernet"
