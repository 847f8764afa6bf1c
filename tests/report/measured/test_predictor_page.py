"""Page of a predictor: its numbers are those of its predictions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, norm

from nas_core.cli import main
from nas_core.graph import nasbench201_graph
from nas_core.predictor import load_accuracy_model
from nas_core.report.measured.evaluation import evaluate_records
from tests.report.measured.data import cells_file, read, report, rows_of

Capture = pytest.CaptureFixture[str]


def train(data: Path, out: Path, *more: str) -> Path:
    settings = [part for value in ("dim=16", "depth=1", "targets=mean", "precision=fp32") for part in ("--set", value)]
    arguments = ["--data", str(data), "--reader", "nasbench201", "--target", "acc", "--out", str(out), *more]
    assert main(["lab", "predictor", "train", *settings, "--members", "2", "--epochs", "4", *arguments]) == 0
    return out


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cells_file(tmp_path_factory.mktemp("cells") / "cells.jsonl")


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    return train(data, data.parent / "acc.safetensors", "--holdout", "0.4")


def test_numbers_are_those_of_the_predictions(data: Path, model: Path, capsys: Capture) -> None:
    assert report("predictor", model, "--data", data) == 0
    page_file = data.parent / "acc.report.html"
    out, page = capsys.readouterr().out, read(page_file)
    assert f"wrote {page_file}" in out
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    graphs = [nasbench201_graph(line["architecture"]) for line in lines]
    accuracies = np.array([line["acc"] for line in lines])
    predictor = load_accuracy_model(model)
    predicted, spread = predictor.predict_with_std(graphs)
    learned = evaluate_records(model, data).evaluation.learned
    assert learned is not None and (~learned).sum() == predictor.info["held_out"]["graphs"]
    rows = {row[0]: row for row in rows_of(page, "family", "held out")}
    tau = kendalltau(predicted[~learned], accuracies[~learned]).statistic
    assert rows["all"][2] == f"{tau:.3f}" and tau == pytest.approx(predictor.info["held_out"]["kendall_tau"], abs=0.01)
    even = ~learned & (np.arange(len(accuracies)) % 2 == 0)
    assert rows["even"][1] == str(even.sum())
    column = {name: place for place, name in enumerate(page.tables[0][0])}
    assert rows["even"][column["mean error"]] == f"{np.abs(predicted - accuracies)[even].mean():.4g}"
    percent = 100 * np.abs(predicted / accuracies - 1)[~learned].mean()
    assert rows["all"][column["mean error (%)"]] == f"{percent:.2f}"
    held = ~learned & (np.abs(predicted - accuracies) <= spread)
    assert rows["all"][column["within std (%)"]] == f"{100 * held.sum() / (~learned).sum():.1f}"
    best = np.argsort(-accuracies[~learned])[: round((~learned).sum() / 10)]
    in_best = kendalltau(predicted[~learned][best], accuracies[~learned][best]).statistic
    assert rows["all"][column["tau, best tenth"]] == f"{in_best:.3f}"
    assert rows["learned"][1] == str(learned.sum())

    coverage = next(f for f in page.figures if "expected inside" in str(f["layout"]["xaxis"]))["data"][1]
    for share, observed in zip(coverage["x"], coverage["y"], strict=True):
        width = norm.ppf((1 + share / 100) / 2)
        assert observed == pytest.approx(100 * (np.abs(predicted - accuracies) <= width * spread)[~learned].mean())

    worst, best_predicted = (
        [int(row[0]) - 1 for row in rows[1:]] for head, rows in page.tables if tuple(head[:2]) == ("record", "family")
    )
    errors = np.abs(predicted - accuracies)[~learned]
    assert worst == np.flatnonzero(~learned)[np.argsort(-errors)][:10].tolist()
    assert best_predicted == np.argsort(-predicted, kind="stable")[:10].tolist()


def test_records_with_equal_graphs_count_as_learned(data: Path, model: Path, tmp_path: Path) -> None:
    other = cells_file(tmp_path / "other.jsonl", seed=9)
    first, learned = evaluate_records(model, data).records.graphs, evaluate_records(model, data).evaluation.learned
    assert learned is not None
    training_graphs = {graph for graph, was in zip(first, learned, strict=True) if was}
    result = evaluate_records(model, other, lower_is_better=True)
    repeated = sum(graph in training_graphs for graph in result.records.graphs)
    assert f"{repeated} of 60 graphs are in the model's training data" in result.evaluation.note("graphs")
    assert result.evaluation.predicted[result.best(1)[0]] == result.evaluation.predicted.min()
    assert result.rank()[np.argmin(result.evaluation.measured)] == 1


def test_unseen_operations_are_extrapolations(tmp_path: Path) -> None:
    few, new = tmp_path / "few.jsonl", tmp_path / "new.jsonl"
    cells = [{"architecture": [1, 1, 1, 1, 1, n % 3 + 1], "acc": 0.5 + n / 40} for n in range(12)]
    few.write_text("".join(json.dumps(cell) + "\n" for cell in cells))
    model = train(few, tmp_path / "m.safetensors", "--holdout", "0")
    new.write_text(few.read_text() + json.dumps({"architecture": [1, 1, 1, 1, 1, 4], "acc": 0.1}) + "\n")
    assert report("predictor", model, "--data", new) == 0
    page = read(tmp_path / "m.report.html")
    assert "1 records have an operation that no training graph had" in page.text
    assert any("is an extrapolation" in sentence for sentence in page.data["points"]["rows"][-1]["about"])


def test_bad_input_is_one_line(data: Path, model: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = data.read_text().splitlines(keepends=True)
    contents = {
        "one": lines[0],
        "damaged": lines[0] + "no json\n" + lines[1],
        "bare": '{"architecture": [1, 1, 1, 1, 1, 1]}\n' * 2,
        "mixed": lines[0] + '{"architecture": [1, 1, 1, 1, 1, 1], "acc": 0.5}\n',
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.jsonl").write_text(content)
    (tmp_path / "page.html").write_text("mine")
    capsys.readouterr()
    for arguments, value in [
        ((tmp_path / "none.safetensors", "--data", data), "none.safetensors"),
        ((model, "--data", tmp_path / "none.jsonl"), "none.jsonl"),
        ((model, "--data", tmp_path / "one.jsonl"), "one.jsonl"),
        ((model, "--data", tmp_path / "damaged.jsonl"), "line 2"),
        ((model, "--data", tmp_path / "bare.jsonl"), "'acc'"),
        ((model, "--data", data, "--target", "top1"), "'top1'"),
        ((model, "--data", tmp_path / "mixed.jsonl", "--by", "family"), "'family'"),
        ((model, "--data", data, "--reader", "nasbench101"), "nasbench101"),
        ((model, "--data", data, "--out", tmp_path / "page.html"), "page.html"),
    ]:
        code = report("predictor", *arguments)
        out, err = capsys.readouterr()
        assert code == 2 and out == "" and value in err and err.count("\n") == 1, (arguments, err)
    assert (tmp_path / "page.html").read_text() == "mine"
    assert report("predictor", model, "--data", tmp_path / "mixed.jsonl", "--out", tmp_path / "mixed.html") == 0
