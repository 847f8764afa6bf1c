"""``nas-ext latency train`` and ``predict`` on handmade networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.graph import Graphs
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency import GraphLatencyModel, load_latency_model
from nas_core.latency.by_graph import predict as shipped
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.predict import predict_networks

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from tests.graph.onnx.models import chain, model, node, residual  # noqa: E402 - needs onnx

pytestmark = pytest.mark.onnx


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["latency", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Residual networks and chains of 30 sizes; latency goes with memory access."""
    graphs = []
    for size in range(2, 32):
        graphs.append(read_onnx(residual(channels=4 * size)).graph)
        graphs.append(read_onnx(chain(size)).graph)
    families = ["residual", "chain"] * 30
    statics = np.array([graph.static for graph in graphs])
    names = np.array([f"n{i}" for i in range(60)])
    data = NetworkLatencies(
        Graphs.of(graphs), 0.1 + 10 * statics[:, 3], np.array(families), names, last_of_each(families, 0.2)
    )
    path = tmp_path_factory.mktemp("networks") / "networks.npz"
    data.save(path)
    return path


@pytest.fixture(scope="module")
def trained(networks: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    options = ["--data", str(networks), "--model", "counts", "--runtime", "onnxruntime", "--out", str(path)]
    assert main(["latency", "train", *options]) == 0
    return path


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    onnx.save(residual(channels=32), path)
    return path


def test_train_tells_each_family_and_what_it_is_fitted_on(networks: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.safetensors"
    code, out, _ = run(capsys, "train", "--data", networks, "--model", "counts", "--out", path, "--runtime", "torch")
    assert code == 0 and "fitted on 48 networks, evaluated on 12" in out
    assert all(f"\n{row} " in out for row in ("residual", "chain", "average", "all"))
    fitted = load_latency_model(path, "graph")
    assert fitted.info["runtime"] == "torch" and fitted.info["networks"] == 48 and fitted.relative_std < 0.05
    assert fitted.info["held_out_families"]["all"]["mape_percent"] == fitted.info["held_out"]["mape_percent"]


def test_all_networks_are_learned_when_asked_for(networks: Path, trained: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.safetensors"
    code, out, _ = run(capsys, "train", "--data", networks, "--model", "counts", "--out", path, "--all")
    assert code == 0 and "fitted again on all 60" in out
    part, full = load_latency_model(trained, "graph"), load_latency_model(path, "graph")
    assert full.info["networks"] == 60 and full.info["held_out"] == part.info["held_out"]


def test_the_ensemble_is_the_default(networks: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.safetensors"
    code, out, err = run(capsys, "train", "--data", networks, "--out", path, "--set", "epochs=1")
    assert code == 0 and "ensemble model of latency in" in out, err
    assert load_latency_model(path, "graph").name == "ensemble"
    code, _, err = run(capsys, "train", "--data", networks, "--out", tmp_path / "n.safetensors", "--set", "dim=16")
    assert code == 2 and "unknown setting of latency model 'ensemble' 'dim': expected one of epochs" in err


def test_predict(trained: Path, onnx_file: Path, tmp_path: Path, capsys: Any) -> None:
    model = load_latency_model(trained, "graph")
    assert isinstance(model, GraphLatencyModel)
    expected = predict_networks([onnx_file], model)[0].latency_ms
    code, out, err = run(capsys, "predict", onnx_file, "--model", trained)
    assert code == 0 and float(out.splitlines()[-1].split()[1]) == pytest.approx(expected, rel=0.01)
    assert "counts model of 48 networks in onnxruntime, held-out MAPE" in err and err.count("\n") == 1
    for suffix in ("jsonl", "csv"):
        path = tmp_path / f"p.{suffix}"
        code, out, _ = run(capsys, "predict", onnx_file, onnx_file, "--model", trained, "--batch", 2, "--out", path)
        assert code == 0 and "2 predictions" in out
    first = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert first["latency_ms"] - 0.1 > 1.5 * (expected - 0.1) and first["std_ms"] > 0 and first["unknown"] == 0
    assert (tmp_path / "p.csv").read_text().startswith("file,latency_ms,std_ms,flops_g,params_m")


def test_open_dimensions_and_unknown_operators(trained: Path, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "open.onnx"
    odd = node("Wiggle", ["r"], ["y"], domain="mine")
    onnx.save(model([node("Relu", ["x"], ["r"]), odd], {"x": ("n", 3, 8, "w")}), path)
    rows = set()
    for shapes in (("x=2,3,8,8", "y=2,5"), ("n=2", "w=8", "y=2,5")):
        options = [part for text in shapes for part in ("--shapes", text)]
        code, out, err = run(capsys, "predict", path, "--model", trained, *options)
        assert code == 0 and err.count("mine.Wiggle x 1") == 1
        rows.add(out.splitlines()[-1])
    assert len(rows) == 1
    code, _, err = run(capsys, "predict", path, "--model", trained)
    assert code == 2 and err.count("\n") == 1
    assert "give --shapes x=1,3,8,1 with your sizes, or --batch 1" in err and "shapes={" not in err
    code, _, err = run(capsys, "predict", path, path, "--model", trained, "--shapes", "x=2,3,8,8")
    assert code == 2 and err.count("give it as --shapes y=1,3,224,224 with its sizes, or export") == 2
    assert "shapes={" not in err


def test_one_broken_file_does_not_stop_the_others(trained: Path, onnx_file: Path, tmp_path: Path, capsys: Any) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(onnx_file.read_bytes()[:50])
    code, out, err = run(capsys, "predict", broken, onnx_file, "--model", trained)
    assert code == 2 and "net.onnx" in out and err.count("broken.onnx") == 1


def test_the_shipped_model_of_this_runtime_is_used(
    trained: Path, onnx_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    code, _, err = run(capsys, "predict", onnx_file)
    assert code == 2 and "no model is shipped for onnxruntime; give --model" in err and err.count("\n") == 1
    (tmp_path / "cpu.safetensors").write_bytes(trained.read_bytes())
    assert run(capsys, "predict", onnx_file)[0] == 0
    assert "no model is shipped for torch" in run(capsys, "predict", onnx_file, "--runtime", "torch")[2]
    other = load_latency_model(trained, "graph")
    other.info["machine"], other.info["runtime"] = {"device_name": "gpu"}, "torch"
    other.save(tmp_path / "gpu.safetensors")
    code, _, err = run(capsys, "predict", onnx_file, "--device", "gpu")
    assert code == 0 and "in torch on gpu" in err
    assert run(capsys, "predict", onnx_file, "--runtime", "torch")[0] == 0
    code, _, err = run(capsys, "predict", onnx_file, "--device", "gpv")
    assert code == 2 and "Did you mean 'gpu'?" in err and err.count("\n") == 1
