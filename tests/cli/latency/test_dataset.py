"""``nas-ext latency dataset`` and ``adapt`` on small networks of real families."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.errors import DataError
from nas_core.latency import load_latency_model
from nas_core.latency.by_graph import adaptation
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset
from nas_core.latency.by_graph.families.registry import chosen_families

pytestmark = pytest.mark.onnx
SHORT = ["--set=repeats=1", "--set=warmup=0", "--set=visits=1", "--set=clock=cpu"]  # a busy machine skips no network


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    return run_latency(capsys, "dataset", *arguments)


def run_latency(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["latency", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_set_of_real_families(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--out", tmp_path / "set", "--families", "nasbench201,encoder,alexnet", *SHORT]
    code, out, _ = run(capsys, *arguments, "--networks", 3)
    assert code == 0 and "networks per hour" in out
    code, out, _ = run(capsys, *arguments, "--networks", 6)
    lines = [line.split() for line in out.splitlines()]
    rows = lines[3:6]
    assert [row[:3] for row in rows] == [["alexnet", "2", "0"], ["nasbench201", "2", "0"], ["encoder", "2", "0"]]
    assert all(float(row[3]) > 0 for row in rows)
    data = read_dataset(tmp_path / "set")
    assert len(data) == 6 and data.family_names == ["alexnet", "nasbench201", "encoder"]
    assert len(NetworkSet.read(tmp_path / "set").rows) == 6
    assert sum(path.stat().st_size for path in (tmp_path / "set" / "onnx").iterdir()) < 600_000


def test_batches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--out", tmp_path / "set", "--families", "alexnet", "--set", "runtimes=onnxruntime", *SHORT]
    assert run(capsys, *arguments, "--networks", 2, "--set", "max_batch=4")[0] == 0
    data, rows = read_dataset(tmp_path / "set"), NetworkSet.read(tmp_path / "set").rows
    assert data.graphs.static is not None
    assert data.graphs.static[:, 0].tolist() == [row["settings"]["batch"] for row in rows]
    code, _, err = run(capsys, *arguments, "--networks", 2)
    assert code == 2 and "was created with setting max_batch = 4" in err


def test_adapt_measures_and_adapts_the_shipped_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adaptation, "chosen_families", lambda: chosen_families("nasbench201,encoder"))
    path, same = tmp_path / "here.safetensors", tmp_path / "same.safetensors"
    code, out, _ = run_latency(capsys, "adapt", "--out", path, "--networks", 10)
    assert code == 0 and "on 10 networks of" in out and "in onnxruntime: error" in out
    model, measured = load_latency_model(path, "graph"), read_dataset(tmp_path / "here")
    assert model.info["machine"] == NetworkSet.read(tmp_path / "here").machine
    ratios = measured.latency_ms / model.predict(measured.graphs)
    assert ratios.min() < 1 < ratios.max() and model.info["networks"] > 1000
    code, _, err = run_latency(capsys, "adapt", "--out", same, "--data", tmp_path / "here", "--model", path)
    assert code == 0, err
    assert load_latency_model(same, "graph").info["factor"] == pytest.approx(model.info["factor"])


def test_skipped_networks_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def collect(folder: Path, families: list, count: int, *_: object) -> Any:
        planned.append(count)
        return SimpleNamespace(rows=[{"error": "slow"} if index % 4 == 0 else {} for index in range(count)])

    monkeypatch.setattr(adaptation, "collect_networks", collect)
    with pytest.raises(DataError):  # nothing was written
        adaptation.adapted_model(tmp_path, networks=10)
    assert planned == [10, 13, 14]


def test_adapt_names_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["adapt", "--out", tmp_path / "here.safetensors"]
    for options, message in (
        (["--data", tmp_path / "none"], "none"),
        (["--data", tmp_path, "--networks", 20], "--networks has no effect with --data"),
        (["--model", "Xeon"], "unknown device of a shipped model 'Xeon'"),
        (["--networks", 3], "--networks"),
        (["--runtime", "tflite"], "tflite"),
    ):
        code, _, err = run_latency(capsys, *out, *options)
        assert code == 2 and message in err, err
    assert not list(tmp_path.iterdir())
