"""The benchmark of clocks on the CPU: a row for each space, and a stopped run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency import latency_clock
from benchmarks.latency.latency_clock import main
from nas_core.files.reading import read_json


def test_rows_and_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "clock.json"
    small = ["--device", "cpu", "--architectures", "2", "--repeats", "2", "--precisions", "fp32", "--out", str(out)]
    true, computed = latency_clock.row, []

    def stops(*arguments: Any) -> dict[str, Any]:
        if computed:
            raise KeyboardInterrupt
        computed.append(arguments[0])
        return true(*arguments)

    monkeypatch.setattr(latency_clock, "row", stops)
    with pytest.raises(KeyboardInterrupt):
        main(small)
    assert not out.exists()
    monkeypatch.setattr(latency_clock, "row", lambda name, *rest: computed.append(name) or true(name, *rest))
    main(small)
    assert computed == list(latency_clock.SPACES)
    found = read_json(out)
    assert [(row["space"], row["clock"]) for row in found["rows"]] == [(name, "wall") for name in computed]
    for row in found["rows"]:
        assert row["pass_ms"] > 0 and -1 <= row["tau_corrected"] <= 1
    assert found["machine"]["device_name"] and found["measured"]["command"].startswith("python -m benchmarks")


def test_a_precision_that_is_not_there_is_a_row_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--device", "cpu", "--precisions", "tf32", "--spaces", "hat_small"])
    assert "precision tf32 is for CUDA devices" in capsys.readouterr().out
