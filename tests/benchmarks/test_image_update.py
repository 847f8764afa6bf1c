"""The benchmark of image updates at a small size: its rows, and that a run which was stopped goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("timm")

from benchmarks.supernet import image_update
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json


def test_rows_are_kept_until_all_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, measure, asked = tmp_path / "image_update.json", image_update.measured, []
    options = ["--device", "cpu", "--small", "--precisions", "fp32", "tf32", "--out", str(out)]

    def stopped(*case: object) -> dict[str, object]:
        asked.append(case[:3])
        if len(asked) == 4:
            raise KeyboardInterrupt
        return measure(*case)  # type: ignore[arg-type]

    monkeypatch.setattr(image_update, "measured", stopped)
    with pytest.raises(KeyboardInterrupt):
        image_update.main(options)
    assert not out.exists() and len(read_jsonl(out.with_suffix(".jsonl"))) == 3
    image_update.main(options)
    assert asked[3] == asked[4] and len(asked) == 2 * len(image_update.CASES) + 1
    content = read_json(out)
    assert not out.with_suffix(".jsonl").exists()
    assert [(row["what"], row["network"]) for row in content["rows"][::2]] == list(image_update.CASES)
    assert all(row["ms"] > 0 and row["images_per_s"] > 0 for row in content["rows"] if row["precision"] == "fp32")
    assert all("NVIDIA" in row["note"] for row in content["rows"] if row["precision"] == "tf32")
    assert content["machine"]["device_name"] and content["model"] == "mformer_cifar10_small_supernet"
