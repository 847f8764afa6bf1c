"""Rows of linear attention's speed: each kept at once, measured once, and only in precisions of the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attention import linear_attention
from benchmarks.parts import linear_rows
from nas_core.errors import ConfigError
from nas_core.files.journal import read_jsonl
from nas_core.files.reading import read_json


def run(out: Path, *options: str) -> None:
    linear_attention.main(["--device", "cpu", "--repeats", "1", "--threads", "1", "--out", str(out), *options])


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, measured, original = tmp_path / "rows.json", [], linear_rows._row  # private: counts what is measured

    def interrupted(device: str, length: int, *rest: object) -> dict[str, object]:
        measured.append(length)
        if length == 24 and len(measured) < 6:
            raise KeyboardInterrupt
        return original(device, length, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(linear_rows, "_row", interrupted)
    options = ("--precision", "fp32", "--lengths", "16", "24")
    with pytest.raises(KeyboardInterrupt):
        run(out, *options)
    work = out.with_suffix(".part.jsonl")
    assert not out.exists() and len(read_jsonl(work)) == 3
    measured += [0, 0]
    run(out, *options)
    assert measured[-3:] == [24, 24, 24] and not work.exists()
    result = read_json(out)
    assert [(row["positions"], row["pass"]) for row in result["rows"]] == [
        (length, each) for length in (16, 24) for each in linear_rows.PASSES
    ]
    assert {"device_name", "torch"} <= result["machine"].keys()
    assert all(row["ours_ms"] > 0 and row["sdpa_ms"] > 0 and row["times_sdpa"] > 0 for row in result["rows"])


def test_precisions_that_the_device_has_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="tf32 is of NVIDIA devices"):
        run(tmp_path / "rows.json", "--precision", "tf32")
    rows = linear_rows.measure("cpu", (), [16], 1, 1, tmp_path / "rows.json", "a run")
    assert {row["precision"] for row in rows} == {"fp32", "bf16", "fp16"}
    assert "left out: precision tf32" in capsys.readouterr().out


def test_the_result_of_the_cpu_is_not_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        linear_attention.main(["--precision", "fp32"])
    assert "give --out" in capsys.readouterr().err
