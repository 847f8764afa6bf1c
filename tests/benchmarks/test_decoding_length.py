"""Benchmark decoding_length, at short positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attention import decoding_length
from nas_core.files.reading import read_json


def test_result_has_times_and_state_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_length, "POSITIONS", (16, 64))
    decoding_length.main(["--out", str(tmp_path / "a.json"), "--width", "32", "--vocab", "20", "--repeats", "2"])
    content = read_json(tmp_path / "a.json")
    state_mb = {name: row["state_mb"] for name, row in content["layouts"].items()}
    assert state_mb["all linear"]["16"] == state_mb["all linear"]["64"]
    softmax = 6 * 2 * 64 * 32 * 4 / 2**20
    assert (
        state_mb["all softmax"]["64"] == pytest.approx(softmax, abs=1e-4)
        and state_mb["all softmax"]["16"] < softmax / 3
    )
    assert all(row["ratio"]["median"] > 0 and row["step_ms"]["64"]["median"] > 0 for row in content["layouts"].values())
    assert content["measured"]["command"].startswith("python -m benchmarks decoding_length")
    published = read_json(decoding_length.RESULT)
    assert published["aim"]["ratio of all linear"] <= published["aim"]["at most"] == decoding_length.MAX_RATIO
