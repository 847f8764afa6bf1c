"""Benchmark latency_clock on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.latency.latency_clock import SPACES, main
from nas_core.files.reading import read_json


def test_a_row_for_each_space(tmp_path: Path) -> None:
    out = tmp_path / "clock.json"
    main(["--device", "cpu", "--architectures", "2", "--repeats", "2", "--precisions", "fp32", "--out", str(out)])
    content = read_json(out)
    assert [(row["space"], row["clock"]) for row in content["rows"]] == [(name, "wall") for name in SPACES]
    for row in content["rows"]:
        assert row["pass_ms"] > 0 and -1 <= row["tau_corrected"] <= 1
    assert content["machine"]["device_name"] and content["measured"]["command"].startswith("python -m benchmarks")


def test_an_unsupported_precision_is_a_row_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--device", "cpu", "--precisions", "tf32", "--spaces", "hat_small"])
    assert "precision tf32" in capsys.readouterr().out
