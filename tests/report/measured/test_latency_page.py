"""Pages of latency datasets: their numbers are those of the measurements and of ``nas-ext latency train``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_graph.dataset.folder import NetworkSet, read_dataset
from nas_core.report.measured.collection import read_collection
from nas_core.space import get_space
from tests.latency.by_genes.machine import Machine
from tests.report.measured.data import architectures_file, network_folder, read, report, rows_of

Capture = pytest.CaptureFixture[str]
SPACE = get_space("hat_small")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx", reason="onnx is not installed")
    return network_folder(tmp_path_factory.mktemp("networks") / "set")


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    path = folder.parent / "counts.safetensors"
    assert main(["latency", "train", "--data", str(folder), "--model", "counts", "--out", str(path)]) == 0
    return path


@pytest.mark.onnx
def test_measurements_and_the_networks_behind_points(folder: Path, capsys: Capture) -> None:
    assert report("latency", folder) == 0
    out = capsys.readouterr().out
    assert f"wrote {folder / 'report.html'}" in out
    page, data = read(folder / "report.html"), read_dataset(folder)
    table = rows_of(page, "family", "networks", "skipped")
    rows = [row[:3] for row in table]
    assert rows == [["one", "6", "0"], ["two", "6", "0"], ["failing", "0", "6"], ["all", "12", "6"]]
    latencies = data.latency_ms[data.families == "one"]
    assert table[0][3:6] == [f"{value:.2f}" for value in (latencies.min(), np.median(latencies), latencies.max())]
    assert [line.split()[:3] for line in out.splitlines()[2:6]] == [row[:3] for row in table]
    assert all(address.startswith(("data:", "#")) for address in page.loaded) and "default-src 'none'" in page.policy
    for fact in ("ValueError: no network of width", "--runtime torch", "a fixed googlenet network", "clock"):
        assert fact in page.text

    rows = page.data["points"]["rows"]
    assert [row["key"] for row in rows] == data.names.tolist()
    good = [row for row in NetworkSet.read(folder).rows if "error" not in row]
    for row, network, latency in zip(rows, good, data.latency_ms, strict=True):
        visits = np.array(network["measured"]["onnxruntime"]["visits"])
        error = 100 * visits.std(ddof=1) / visits.mean() / np.sqrt(len(visits))
        assert row["values"] == pytest.approx(
            [network["family"], latency, error, network["flops_g"], network["params_m"], network["nodes"]]
        )
        assert row["facts"]["width"] == str(network["settings"]["width"])
    traces = page.figures[0]["data"]
    for trace in traces:
        for x, y, number in zip(trace["x"], trace["y"], trace["customdata"], strict=True):
            assert (x, y) == (good[number]["flops_g"], pytest.approx(data.latency_ms[number]))
    assert sum(len(trace["x"]) for trace in traces) == len(data)


@pytest.mark.onnx
def test_errors_are_those_of_the_training(folder: Path, model: Path, capsys: Capture) -> None:
    page_file = folder.parent / "evaluated.html"
    assert report("latency", folder, "--model", model, "--out", page_file, "--force") == 0
    out, page = capsys.readouterr().out, read(page_file)
    trained = load_latency_model(model, "graph").info["held_out_families"]
    rows = {row[0]: row for row in rows_of(page, "family", "networks held out")}
    assert rows.keys() == trained.keys() == {"one", "two", "average", "all"}
    for name, quality in trained.items():
        assert rows[name][2:4] == [f"{quality['mape_percent']:.2f}", f"{quality['acc10_percent']:.1f}"]
        assert f"{quality['mape_percent']:.2f}" in out
    data = read_dataset(folder)
    predicted, deviation = load_latency_model(model, "graph").predict_with_std(data.graphs)
    inside = np.abs(predicted - data.latency_ms) <= deviation
    assert rows["all"][4] == f"{100 * inside[data.held_out].mean():.1f}"
    signed = 100 * (predicted / data.latency_ms - 1)
    assert rows["one"][5] == f"{signed[data.held_out & (data.families == 'one')].mean():+.2f}"
    assert rows["two"][-1] == f"{np.abs(signed[~data.held_out & (data.families == 'two')]).mean():.2f}"
    assert "10 of 12 networks are in the model's training data" in page.text

    held_out = np.flatnonzero(data.held_out)
    assert page.data["points"]["first"] == held_out[np.argmax(np.abs(signed[held_out]))]
    traces = page.traces(0)
    pale = {
        number
        for trace in traces.values()
        for number, opacity in zip(trace.get("customdata", ()), trace.get("marker", {}).get("opacity", ()), strict=True)
        if opacity < 0.5
    }
    assert pale == set(np.flatnonzero(~data.held_out).tolist())
    band = traces["within 10 %"]
    half = len(band["x"]) // 2
    np.testing.assert_allclose(np.array(band["y"]) / band["x"], [1.1] * half + [0.9] * half)
    assert page.data["points"]["rows"][0]["about"] == ["The model has learned it."]


@pytest.mark.onnx
def test_second_measurements(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "set"
    copy.mkdir()
    for file in ("dataset.jsonl", "onnx"):
        (copy / file).symlink_to(folder / file)
    rows = [row for row in NetworkSet.read(copy).rows if "error" not in row][:4]
    lines = []
    for row, factor in zip(rows, (1.1, 1.1, 1.1, 1.2), strict=True):
        first = row["measured"]["onnxruntime"]
        times = {**first, "relative": first["relative"] * factor, "raw_ms": first["raw_ms"] * 1.5}
        lines.append(json.dumps({"name": row["name"], "time": 0.0, "measured": {"onnxruntime": times}}) + "\n")
    (copy / "again.jsonl").write_text("".join(lines))
    assert report("latency", copy, "--out", tmp_path / "p.html") == 0
    page = read(tmp_path / "p.html")
    assert [row[-2:] for row in rows_of(page, "family", "networks")][:2] == [["2", "+10.00"], ["2", "+15.00"]]
    assert page.data["points"]["rows"][0]["facts"]["measured again"] == "+10.0 %"


def test_architectures_of_a_space(tmp_path: Path, machine: Machine, capsys: Capture) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    assert main(["latency", "fit", "--data", str(data), "--out", str(fitted)]) == 0
    assert report("latency", data, "--model", fitted) == report("latency", data, "--model", fitted) == 0
    page, dataset = read(tmp_path / "lat.report.html"), LatencyDataset.read(data)
    latency = dataset.data().latency_ms
    row = rows_of(page, "space", "architectures")[0]
    assert row[:5] == ["hat_small", "24", *(f"{v:.2f}" for v in (latency.min(), np.median(latency), latency.max()))]
    rows = page.data["points"]["rows"]
    assert [(r["key"], r["genes"]) for r in rows] == [(record["key"], record["genes"]) for record in dataset.records]
    assert "All 24 architectures are in the model's training data" in page.text
    predicted = load_latency_model(fitted, "genes").predict_rows(dataset.data().inputs)
    mean = 100 * np.abs(predicted / latency - 1).mean()
    assert rows_of(page, "family", "architectures", "mean error (%)")[0][2] == f"{mean:.2f}"
    drift = next(figure for figure in page.figures if "order of measurement" in str(figure["layout"]["xaxis"]))
    state = drift["data"][1]["y"]
    assert state[-1] > state[0] + 15 and state == sorted(state), "the machine becomes slower by 1 % each time"

    other = architectures_file(tmp_path / "other.jsonl", machine, seed=5)
    capsys.readouterr()
    assert main(["latency", "check", "--model", str(fitted), "--data", str(other)]) == 0
    checked = re.search(r"as measured +(\d+) +([\d.]+)", capsys.readouterr().out)
    assert report("latency", other, "--model", fitted) == 0
    page = read(tmp_path / "other.report.html")
    assert "2 of 24 architectures are in the model's training data" in page.text  # smallest and largest
    collection = read_collection(other)
    predicted = load_latency_model(fitted, "genes").predict([network.architecture for network in collection.networks])
    errors = 100 * np.abs(predicted / collection.values("latency_ms") - 1)
    assert checked is not None and float(checked[2]) == pytest.approx(errors.mean(), abs=0.006)
    assert rows_of(page, "family", "architectures held out")[0][2] == f"{errors[2:].mean():.2f}"


def test_bad_input_is_one_line(tmp_path: Path, machine: Machine, capsys: Capture) -> None:
    data = architectures_file(tmp_path / "lat.jsonl", machine)
    head, *lines = data.read_text().splitlines(keepends=True)
    (tmp_path / "header.jsonl").write_text(head)
    (tmp_path / "damaged.jsonl").write_text("".join([head, "no json\n", *lines]))
    (tmp_path / "void").mkdir()
    (tmp_path / "void.html").write_text("mine")
    wide = architectures_file(tmp_path / "wide.jsonl", machine, space=get_space("mformer_translation_small"))
    main(["latency", "fit", "--data", str(wide), "--out", str(tmp_path / "wide.json")])
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    capsys.readouterr()
    cases: list[tuple[tuple[Any, ...], str]] = [
        ((tmp_path / "none.jsonl",), "none.jsonl"),
        ((tmp_path / "void",), "void"),
        ((tmp_path / "void.html",), "void.html"),
        ((tmp_path / "header.jsonl",), "header.jsonl"),
        ((tmp_path / "damaged.jsonl",), "line 2"),
        ((data, "--runtime", "torch"), "--runtime torch"),
        ((data, "--model", tmp_path / "none.json"), "none.json"),
        ((data, "--model", data), "lat.jsonl"),
        ((data, "--model", tmp_path / "wide.json"), "'hat_small'"),
        ((data, "--out", tmp_path / "void.html"), "void.html"),
        ((data, "--out", tmp_path / "page.txt"), "page.txt"),
    ]
    for arguments, value in cases:
        code = report("latency", *arguments)
        out, err = capsys.readouterr()
        assert code == 2 and out == "" and value in err and err.count("\n") == 1, (arguments, err)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
