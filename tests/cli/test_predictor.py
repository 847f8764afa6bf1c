"""``nas-ext lab predictor`` end to end with very small models."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.graph import Graph, nasbench201_string
from nas_core.models.translation.kind import translation_graph
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor import progress as checkpoint_module
from nas_core.predictor.progress import Checkpoint
from nas_core.space import get_space
from tests.predictor.graphs import random_graphs, sizes_of_operations

TINY = ["--model", "nn-former", "--set", "dim=16", "--set", "depth=1", "--set", "epochs=3"]


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main(["lab", "predictor", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    graphs = random_graphs((5, 6, 7) * 16, seed=1)
    values = 0.5 + sizes_of_operations(graphs)
    return write(
        tmp_path / "d.jsonl",
        [{"graph": g.to_dict(), "target": float(v)} for g, v in zip(graphs, values, strict=True)],
    )


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    stream = np.random.default_rng(0)
    return write(
        tmp_path / "cells.jsonl",
        [{"architecture": row.tolist(), "acc": float(row.sum())} for row in stream.integers(1, 5, (40, 6))],
    )


def test_train_and_predict(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "p.safetensors"
    code, out, err = run(capsys, "train", "--data", data, "--out", model, *TINY, "--set", "members=2")
    assert (code, err) == (0, "")
    assert all(word in out for word in ("held out: 5 graphs", "Kendall tau", "MAPE", "on 43 graphs", "to these only"))
    assert {f.name for f in tmp_path.iterdir()} == {"d.jsonl", "p.safetensors"}
    predictor = NNFormerPredictor.load(model)
    assert predictor.recipe.members == 2 and predictor.info["held_out"]["graphs"] == 5

    code, out, err = run(capsys, "predict", "--model", model, "--data", data)
    assert (code, err) == (0, "") and len(out.splitlines()) == 50 and out.split()[:3] == ["record", "prediction", "std"]
    for name in ("f.jsonl", "f.csv"):
        code, out, _ = run(capsys, "predict", "--model", model, "--data", data, "--out", tmp_path / name)
        assert code == 0 and "48 predictions" in out
    rows = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    graphs = [Graph.from_dict(json.loads(line)["graph"]) for line in data.read_text().splitlines()]
    expected, std = predictor.predict_with_std(graphs)
    np.testing.assert_array_equal([row["prediction"] for row in rows], expected)
    np.testing.assert_array_equal([row["std"] for row in rows], std)
    assert (tmp_path / "f.csv").read_text().splitlines()[0] == "record,target,prediction,std"


def test_a_predictor_without_a_standard_deviation(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bare.safetensors"
    assert run(capsys, "train", "--data", data, "--out", bare, *TINY)[0] == 0
    code, output, _ = run(capsys, "predict", "--model", bare, "--data", data)
    assert code == 0 and "std" not in output


def test_the_reader_is_kept(cells: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "p.safetensors"
    arguments = ("--data", cells, "--out", model, "--reader", "nasbench201", "--target", "acc", "--holdout", 0)
    code, _, err = run(capsys, "train", *arguments, *TINY)
    assert code == 2 and "--set targets=mean" in err
    code, out, err = run(capsys, "train", *arguments, *TINY, "--set", "targets=mean")
    assert (code, err) == (0, "") and "no held-out evaluation" in out and "'acc'" in out
    assert NNFormerPredictor.load(model).info["reader"] == "nasbench201"
    for more in ([], ["--reader", "nasbench201"]):
        assert run(capsys, "predict", "--model", model, "--data", cells, *more)[0] == 0
    code, _, err = run(capsys, "predict", "--model", model, "--data", cells, "--reader", "nasbench101")
    assert code == 2 and "leave out --reader nasbench101" in err


def test_attributes_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Widths of a translation network are in attributes alone, and there are more nodes than the recipe expects."""
    space = get_space("hat_wmt14_en_de")
    rows = [*space.architectures(space.sample_rows(np.random.default_rng(0), 20)), space.largest()]
    records = [{"architecture": a.to_dict(), "target": float(a.number("encoder.embed_dim"))} for a in rows]
    data, model, exact = write(tmp_path / "d.jsonl", records), tmp_path / "p.safetensors", ["--set", "precision=fp32"]
    exact += ["--set", "targets=mean"]
    code, out, _ = run(capsys, "train", "--data", data, "--out", model, "--reader", "translation", *TINY, *exact)
    assert code == 0 and "set by the data: attributes=5, max_nodes=34" in out
    assert len(set(NNFormerPredictor.load(model).predict([translation_graph(a) for a in rows]))) > 15


def test_an_interrupted_training_goes_on(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "EVERY_S", 0.0)
    save = Checkpoint.save
    calls: list[int] = []

    def interrupted(at: int, saved: bool) -> None:
        calls.clear()

        def stop(self: Checkpoint, *arguments: Any) -> None:
            calls.append(0)
            if saved:
                save(self, *arguments)
            if len(calls) == at:
                raise KeyboardInterrupt

        monkeypatch.setattr(Checkpoint, "save", stop)

    def train(name: str) -> tuple[int, str, str]:
        return run(capsys, "train", "--data", data, "--out", tmp_path / f"{name}.safetensors", *TINY)

    assert train("whole")[0] == 0
    interrupted(1, saved=False)
    code, _, err = train("parts")
    assert code == 130 and "starts again" in err
    interrupted(5, saved=True)
    code, _, err = train("parts")
    assert code == 130 and "resumes" in err and not (tmp_path / "parts.safetensors").exists()
    interrupted(0, saved=True)
    assert train("parts")[0] == 0
    full, parts = ((tmp_path / f"{name}.safetensors").read_bytes() for name in ("whole", "parts"))
    assert full == parts
    assert len(list(tmp_path.iterdir())) == 3


def test_operations_that_no_training_record_has(
    cells: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    model, lines = tmp_path / "p.safetensors", [json.loads(line) for line in cells.read_text().splitlines()]
    few = write(tmp_path / "few.jsonl", [{"architecture": [1, 1, 1, 1, 1, n % 3 + 1], "acc": n / 9} for n in range(9)])
    train = ("train", "--data", few, "--out", model, "--reader", "nasbench201", "--target", "acc", "--holdout", 0)
    assert run(capsys, *train, *TINY)[0] == 0
    new = write(tmp_path / "new.jsonl", [{"architecture": [1] * 6}, {"architecture": [1, 1, 1, 1, 1, 4]}, *lines])
    predict = ("predict", "--model", model, "--data", new)
    for more in ([], ["--unseen", "error"]):
        code, out, err = run(capsys, *predict, *more)
        assert code == 2 and out == "" and err.count("\n") == 1
        assert "operation 3" in err and "graph 1 (from 0)" in err and "--unseen warn" in err
    code, out, _ = run(capsys, *predict, "--unseen", "warn")
    assert code == 0 and len(out.splitlines()) == len(lines) + 4
    assert "predictions for graphs with it are guesses" in caplog.text
    code, _, err = run(capsys, *predict, "--unseen", "maybe")
    assert code == 2 and "expected one of error, warn, ignore" in err


def test_the_default_model(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "p.safetensors"
    code, out, err = run(capsys, "train", "--data", data, "--out", model, "--set", "trees=2")
    assert (code, err) == (0, "") and "held out: 5 graphs" in out and "statistics predictor of 'target'" in out
    assert run(capsys, "predict", "--model", model, "--data", data)[0] == 0
    featured = random_graphs((5, 6, 7) * 6, features=True)
    records = [{"graph": g.to_dict(), "target": i} for i, g in enumerate(featured)]
    features, model = write(tmp_path / "f.jsonl", records), tmp_path / "f.safetensors"
    code, out, _ = run(capsys, "train", "--data", features, "--out", model, "--set", "trees=2")
    assert code == 0 and "note" not in out and run(capsys, "predict", "--model", model, "--data", features)[0] == 0
    code, _, err = run(capsys, "predict", "--model", model, "--data", data)
    assert code == 2 and "the predictor was fitted to graphs with 8 attributes" in err and err.count("\n") == 1


def predict(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["lab", "predictor", "predict", "--model", "prior", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.fixture
def prior_cells(tmp_path: Path) -> Path:
    """A cell of average pooling, and one of convolutions."""
    path = tmp_path / "cells.jsonl"
    path.write_text("".join(json.dumps({"architecture": nasbench201_string([op] * 6)}) + "\n" for op in (4, 3)))
    return path


def test_networks_that_nobody_trained_are_ordered(
    prior_cells: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "f.csv"
    code, output, _ = predict(capsys, "--reader", "nasbench201", "--data", prior_cells, "--out", out)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert code == 0 and "2 predictions" in output and "std" not in rows[0]
    assert float(rows[1]["prediction"]) > float(rows[0]["prediction"])
