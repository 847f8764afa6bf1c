"""The page of a latency data set: its numbers are those of the measurements and of ``nas-ext latency train``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.latency import load_latency_model
from nas_core.latency.by_genes import LatencyDataset
from nas_core.latency.by_graph.dataset import NetworkSet, read_dataset
from nas_core.report.measured import read_collection
from nas_core.space import get_space
from tests.latency.by_genes.machine import Machine
from tests.report.measured.data import architectures_file, network_folder, read, report, rows_of

Capture = pytest.CaptureFixture[str]


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
def test_what_was_measured(folder: Path, capsys: Capture) -> None:
    assert report("latency", folder) == 0
    out = capsys.readouterr().out
    assert f"wrote {folder / 'report.html'}" in out
    page, data = read(folder / "report.html"), read_dataset(folder)
    table = rows_of(page, "family", "networks", "skipped")
    assert [row[:3] for row in table] == [
        ["one", "6", "0"],
        ["two", "6", "0"],
        ["failing", "0", "6"],
        ["all", "12", "6"],
    ]
    own = data.latency_ms[data.families == "one"]
    assert table[0][3:6] == [f"{value:.2f}" for value in (own.min(), np.median(own), own.max())]
    assert [line.split()[:3] for line in out.splitlines()[2:6]] == [row[:3] for row in table]
    assert all(address.startswith(("data:", "#")) for address in page.loaded) and "default-src 'none'" in page.policy
    assert "ValueError: no network of width" in page.text and "No network was measured a second time" in page.text
    for fact in ("onnxruntime", "--runtime torch", "a fixed googlenet network", "2 visits to each network", "clock"):
        assert fact in page.text


@pytest.mark.onnx
def test_behind_each_point_is_its_network(folder: Path) -> None:
    report("latency", folder)
    page, data = read(folder / "report.html"), read_dataset(folder)
    rows = page.data["points"]["rows"]
    assert [row["key"] for row in rows] == data.names.tolist()
    titles = [field["title"] for field in page.data["points"]["fields"]]
    assert titles[:3] == ["family", "measured", "standard error"] and titles[-1] == "operators"
    found = NetworkSet.read(folder)
    good = [row for row in found.rows if "error" not in row]
    for row, network, latency in zip(rows, good, data.latency_ms, strict=True):
        visits = np.array(network["measured"]["onnxruntime"]["visits"])
        error = 100 * visits.std(ddof=1) / visits.mean() / np.sqrt(len(visits))
        assert row["values"] == pytest.approx(
            [network["family"], latency, error, network["flops_g"], network["params_m"], network["nodes"]]
        )
        assert row["facts"]["width"] == str(network["settings"]["width"])
    sizes = page.figures[0]
    for trace in sizes["data"]:
        for x, y, number in zip(trace["x"], trace["y"], trace["customdata"], strict=True):
            assert (x, y) == (good[number]["flops_g"], pytest.approx(data.latency_ms[number]))
    assert sum(len(trace["x"]) for trace in sizes["data"]) == len(data)


@pytest.mark.onnx
def test_errors_are_those_that_the_training_tells(folder: Path, model: Path, capsys: Capture) -> None:
    page_file = folder.parent / "judged.html"
    assert report("latency", folder, "--model", model, "--out", page_file, "--force") == 0
    out, page = capsys.readouterr().out, read(page_file)
    told = load_latency_model(model, "graph").info["held_out_families"]
    rows = {row[0]: row for row in rows_of(page, "family", "networks held out")}
    assert rows.keys() == told.keys() == {"one", "two", "average", "all"}
    for name, quality in told.items():
        assert rows[name][2:4] == [f"{quality['mape_percent']:.2f}", f"{quality['acc10_percent']:.1f}"]
        assert f"{quality['mape_percent']:.2f}" in out
    data = read_dataset(folder)
    predicted, spread = load_latency_model(model, "graph").predict_with_spread(data.graphs)
    inside = np.abs(predicted - data.latency_ms) <= spread
    assert rows["all"][4] == f"{100 * inside[data.held_out].mean():.1f}"
    signed = 100 * (predicted / data.latency_ms - 1)
    assert rows["one"][5] == f"{signed[data.held_out & (data.families == 'one')].mean():+.2f}"
    learned = np.abs(signed[~data.held_out & (data.families == "two")]).mean()
    assert rows["two"][-1] == f"{learned:.2f}", "beside them the error on what was learned"
    assert "has learned 10 of these 12 networks; the other 2 judge it" in page.text

    worst = rows_of(page, "network", "family", "measured (ms)")
    order = np.flatnonzero(data.held_out)[np.argsort(-np.abs(signed[data.held_out]))]
    assert [row[0] for row in worst] == data.names[order].tolist()
    traces = page.traces(0)
    clouds = [trace for trace in traces.values() if "customdata" in trace]
    pale = {
        n for trace in clouds for n, o in zip(trace["customdata"], trace["marker"]["opacity"], strict=True) if o < 0.5
    }
    assert pale == set(np.flatnonzero(~data.held_out).tolist())
    band = traces["within 10 %"]
    half = len(band["x"]) // 2
    np.testing.assert_allclose(np.array(band["y"][:half]) / band["x"][:half], 1.1)
    np.testing.assert_allclose(np.array(band["y"][half:]) / band["x"][half:], 0.9)
    assert page.data["points"]["rows"][0]["about"] == ["The model has learned it."]


@pytest.mark.onnx
def test_a_model_that_does_not_say_what_it_learned_is_doubted(folder: Path, model: Path, tmp_path: Path) -> None:
    silent = load_latency_model(model, "graph")
    del silent.info["learned"]
    silent.info |= {"runtime": "torch", "machine": {**silent.info["machine"], "device_name": "abacus"}}
    silent.save(tmp_path / "m.safetensors")
    assert report("latency", folder, "--model", tmp_path / "m.safetensors", "--out", tmp_path / "p.html") == 0
    page = read(tmp_path / "p.html")
    assert "is not known: its file does not say. Errors on networks that it has learned flatter" in page.text
    assert "on another machine: abacus, the data on" in page.text
    assert rows_of(page, "family", "networks", "mean error (%)")[-1][1] == "12"
    assert "torch " in page.text and "--runtime onnxruntime" in page.text, "the page is of the model's runtime"
    report(
        "latency",
        folder,
        "--model",
        tmp_path / "m.safetensors",
        "--runtime",
        "onnxruntime",
        "--out",
        tmp_path / "o.html",
    )
    assert "The model predicts torch, the data are of onnxruntime." in read(tmp_path / "o.html").text


@pytest.mark.onnx
def test_second_measurements(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "set"
    copy.mkdir()
    for file in ("dataset.jsonl", "onnx"):
        (copy / file).symlink_to(folder / file)
    rows = [row for row in NetworkSet.read(copy).rows if "error" not in row][:4]
    second = []
    for row, factor in zip(rows, (1.1, 1.1, 1.1, 1.2), strict=True):
        first = row["measured"]["onnxruntime"]
        times = {**first, "relative": first["relative"] * factor, "raw_ms": first["raw_ms"] * 1.5}
        second.append({"name": row["name"], "time": 0.0, "measured": {"onnxruntime": times}})
    (copy / "again.jsonl").write_text("".join(json.dumps(line) + "\n" for line in second))
    assert report("latency", copy, "--out", tmp_path / "p.html") == 0
    page = read(tmp_path / "p.html")
    assert re.search(r"4 networks were measured a second time: \+10\.0 % .* divided out, \+50\.0 % ", page.text)
    assert [row[-2:] for row in rows_of(page, "family", "networks")][:2] == [["2", "+10.00"], ["2", "+15.00"]]
    assert page.data["points"]["rows"][0]["facts"]["measured again"] == "+10.0 %"


def test_architectures_of_a_space(tmp_path: Path, machine: Machine, capsys: Capture) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    assert main(["latency", "fit", "--data", str(data), "--out", str(fitted)]) == 0
    assert report("latency", data, "--model", fitted) == 0
    assert f"wrote {tmp_path / 'lat.report.html'}" in capsys.readouterr().out
    page, found = read(tmp_path / "lat.report.html"), LatencyDataset.read(data)
    latency = found.data().latency_ms
    row = rows_of(page, "space", "architectures")[0]
    assert row[:5] == ["hat_small", "24", *(f"{v:.2f}" for v in (latency.min(), np.median(latency), latency.max()))]
    rows = page.data["points"]["rows"]
    assert [r["key"] for r in rows] == [record["key"] for record in found.records]
    assert [r["genes"] for r in rows] == [record["genes"] for record in found.records]
    assert "has learned all of these 24 architectures. Errors on what was learned flatter" in page.text
    predicted = load_latency_model(fitted, "genes").predict_rows(found.data().inputs)
    mean = 100 * np.abs(predicted / latency - 1).mean()
    assert rows_of(page, "family", "architectures", "mean error (%)")[0][2] == f"{mean:.2f}"
    drift = next(figure for figure in page.figures if "order of their measurement" in str(figure["layout"]["xaxis"]))
    state = drift["data"][1]["y"]
    assert state[-1] > state[0] + 15 and state == sorted(state), "the machine becomes slower by 1 % each time"


def test_other_architectures_judge_a_model(tmp_path: Path, machine: Machine, capsys: Capture) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    main(["latency", "fit", "--data", str(data), "--out", str(fitted)])
    other = architectures_file(tmp_path / "other.jsonl", machine, seed=5)
    capsys.readouterr()
    assert main(["latency", "check", "--model", str(fitted), "--data", str(other)]) == 0
    told = re.search(r"as measured +(\d+) +([\d.]+)", capsys.readouterr().out)
    assert report("latency", other, "--model", fitted) == 0
    page = read(tmp_path / "other.report.html")
    assert "has learned 2 of these 24 architectures; the other 22 judge it" in page.text  # smallest and largest
    collection = read_collection(other)
    predicted = load_latency_model(fitted, "genes").predict([one.architecture for one in collection.networks])
    errors = 100 * np.abs(predicted / collection.values("latency_ms") - 1)
    assert told is not None and float(told[2]) == pytest.approx(errors.mean(), abs=0.006)
    assert rows_of(page, "family", "architectures held out")[0][2] == f"{errors[2:].mean():.2f}"


def test_predictions_are_not_called_measurements(tmp_path: Path, machine: Machine) -> None:
    data = architectures_file(tmp_path / "lat.jsonl", machine)
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[0]["settings"]["workload"] = {"kind": "predicted", "of": {"kind": "translation"}, "model": "ensemble"}
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert report("latency", data) == 0
    text = read(tmp_path / "lat.report.html").text
    assert "These latencies were not measured: model 'ensemble' of whole networks predicted them" in text


def test_wrong_inputs_are_one_line(tmp_path: Path, machine: Machine, capsys: Capture) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    main(["latency", "fit", "--data", str(data), "--out", str(fitted)])
    (tmp_path / "void").mkdir()
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "header.jsonl").write_text(data.read_text().splitlines(keepends=True)[0])
    damaged = data.read_text().splitlines(keepends=True)
    (tmp_path / "damaged.jsonl").write_text("".join([damaged[0], "no json\n", *damaged[1:]]))
    (tmp_path / "void.html").write_text("mine")
    wide = architectures_file(tmp_path / "wide.jsonl", machine, space=get_space("mformer_translation_small"))
    main(["latency", "fit", "--data", str(wide), "--out", str(tmp_path / "wide.json")])
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "dataset.jsonl").write_text('{"format": "nas-ext/latency-data"}\n')
    (tmp_path / "table.csv").write_text("a,b\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    capsys.readouterr()
    for arguments, message in [
        ((tmp_path / "none.jsonl",), "is not there; expected a folder of 'nas-ext latency dataset'"),
        ((tmp_path / "void",), "holds no dataset.jsonl; expected a folder of"),
        ((tmp_path / "empty.jsonl",), "is empty"),
        ((tmp_path / "header.jsonl",), "holds no measurement yet"),
        ((tmp_path / "damaged.jsonl",), "line 2 is not a JSON object"),
        ((tmp_path / "folder",), "holds no latencies of networks"),
        ((tmp_path / "folder" / "dataset.jsonl",), "give the folder"),
        ((tmp_path / "table.csv",), "ends in .csv; expected"),
        ((data, "--runtime", "torch"), "--runtime torch is for folders"),
        ((data, "--model", tmp_path / "none.json"), "file not found"),
        ((data, "--model", data), "is not JSON"),
        ((data, "--model", tmp_path / "wide.json"), "which differs from 'hat_small'"),
        ((data, "--out", tmp_path / "void.html"), "--force"),
        ((data, "--out", tmp_path / "page.txt"), "ends in .html"),
        ((data, "--out", tmp_path / "void"), "ends in .html"),
    ]:
        code = report("latency", *arguments)
        out, err = capsys.readouterr()
        assert code == 2 and out == "", (arguments, err)
        assert message in err and err.count("\n") == 1, (arguments, err)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.onnx
def test_models_of_the_other_sort_are_refused(
    folder: Path, model: Path, tmp_path: Path, machine: Machine, capsys: Capture
) -> None:
    data, fitted = architectures_file(tmp_path / "lat.jsonl", machine), tmp_path / "lat.json"
    main(["latency", "fit", "--data", str(data), "--out", str(fitted)])
    capsys.readouterr()
    for arguments, message in [
        ((folder, "--model", fitted), "genes of one search space and no networks"),
        ((data, "--model", model), "reads graphs of networks and no genes"),
        ((folder, "--runtime", "tensorrt"), "not measured in runtime 'tensorrt'"),
    ]:
        code = report("latency", *arguments)
        err = capsys.readouterr().err
        assert code == 2 and message in err and err.count("\n") == 1, (arguments, err)
    for line in ("no json\n", '{"name": "one_0000"}\n'):
        copy = tmp_path / "set"
        copy.mkdir(exist_ok=True)
        (copy / "dataset.jsonl").write_bytes((folder / "dataset.jsonl").read_bytes())
        (copy / "again.jsonl").write_text(line + line)
        assert report("latency", copy) == 2 and "again.jsonl, line 1 is" in capsys.readouterr().err


def test_words_are_commands_and_folders_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    assert report("nothing") == 2 and "expected the --out folder of 'nas-ext search'" in capsys.readouterr().err
    assert report("latency") == 2 and "Missing argument" in capsys.readouterr().err
    (tmp_path / "latency").mkdir()
    assert report("latency") == 2 and "latency" in (said := capsys.readouterr().err) and "Missing" not in said
    assert report("--help") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("RUN ..", "architecture", "latency", "predictor"))
    assert report("RUN", "--help") == 0 and "--train-log" in capsys.readouterr().out


@pytest.mark.parametrize("when", [1e300, -1e18, float("nan"), "yesterday"])
def test_a_time_that_is_none_is_left_out(when: Any, tmp_path: Path, machine: Machine) -> None:
    data = architectures_file(tmp_path / "lat.jsonl", machine, 4)
    head, *records = map(json.loads, data.read_text().splitlines())
    data.write_text("".join(json.dumps(one) + "\n" for one in (head, *({**r, "time": when} for r in records))))
    assert report("latency", data) == 0


def test_a_page_may_stand_for_itself(tmp_path: Path, machine: Machine) -> None:
    data = architectures_file(tmp_path / "lat.jsonl", machine, 4)
    assert report("latency", data) == 0 and report("latency", data) == 0, "the default page is replaced"
    assert "Only 4 were measured: all figures of this page are rough." in read(tmp_path / "lat.report.html").text
