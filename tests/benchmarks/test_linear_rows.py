"""Rows of linear attention's speed in the precisions of a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attention import linear_attention
from benchmarks.parts import linear_rows
from nas_core.errors import ConfigError


def run(out: Path, *options: str) -> None:
    linear_attention.main(["--device", "cpu", "--repeats", "1", "--threads", "1", "--out", str(out), *options])


def test_unsupported_precisions_are_rejected_or_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="tf32 needs an NVIDIA GPU"):
        run(tmp_path / "rows.json", "--precision", "tf32")
    rows = linear_rows.measure("cpu", (), [16], 1, 1, tmp_path / "rows.json", "a run")
    assert {row["precision"] for row in rows} == {"fp32", "bf16", "fp16"}
    assert "skipped: precision tf32" in capsys.readouterr().out
