"""Commands of nas-ext with supernets of masked language models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.files import read_json
from nas_core.space import Architecture
from nas_core.supernet import open_exportable
from tests.contracts.host import HostContract
from tests.fairseq_ext.masked_lm.training import SPACE


class TestMaskedLMHost(HostContract):
    host = "fairseq"

    @pytest.fixture
    def checkpoint(self, trained: Callable[[str], Path]) -> Path:
        return trained("neuron")


def test_latency_search_and_extraction(
    trained: Callable[[str], Path], space_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = ["latency", "collect", "--space", str(space_file), "--out", str(tmp_path / "l.jsonl"), "--samples", "16"]
    assert (
        main([*timed, "--repeats", "2", "--workload", "vocab=40", "--workload", "batch=2", "--workload", "length=6"])
        == 0
    )
    captured = capsys.readouterr()
    assert "16 architectures" in captured.out + captured.err
    fit = ["latency", "fit", "--data", str(tmp_path / "l.jsonl"), "--out", str(tmp_path / "l.json")]
    assert main([*fit, "--model", "linear"]) == 0
    search = ["search", "--checkpoint", str(trained("neuron")), "--out", str(tmp_path / "run"), "--strategy", "random"]
    assert (
        main(
            [
                *search,
                "--set",
                "evaluations=4",
                "--limit",
                "latency_ms=1000",
                "--latency-model",
                str(tmp_path / "l.json"),
            ]
        )
        == 0
    )
    capsys.readouterr()
    assert main([*search, "--out", str(tmp_path / "other"), "--limit", "cache_mb=1"]) == 2
    error = capsys.readouterr().err.strip()
    assert "masked_lm networks decode nothing and have no cache; limit their memory instead" in error
    assert "\n" not in error and not (tmp_path / "other").exists()
    found = tmp_path / "found.json"
    SPACE.smallest().save(found)
    extract = ["extract", "--checkpoint", str(trained("neuron")), "--arch", str(found), "--out", str(tmp_path / "s.pt")]
    assert main(extract) == 0 and (tmp_path / "s.pt").is_file()
    assert Architecture.load(found) == SPACE.smallest()


@pytest.mark.onnx
def test_export_writes_what_a_reader_needs(trained: Callable[[str], Path], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    checkpoint, out = trained("neuron"), tmp_path / "out"
    SPACE.smallest().save(tmp_path / "a.json")
    command = ["export", "--checkpoint", str(checkpoint), "--arch", str(tmp_path / "a.json"), "--out", str(out)]
    assert main(command) == 0
    info = read_json(out / "model.json")
    assert info["kind"] == "masked_lm" and info["limits"] == {"tokens": 12}
    assert (out / "encoder.onnx").is_file() and (out / "dict.txt").is_file()
    part = open_exportable(checkpoint).exportable(SPACE.largest()).parts[0]
    assert part.name == "encoder" and [value.name for value in part.outputs] == ["features", "logits"]
