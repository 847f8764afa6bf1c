"""``nas-ext lab predictor predict --model prior``: networks that nobody trained."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.graph import nasbench201_graph, nasbench201_string
from tests.predictor.graphs import random_graphs


def predict(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["lab", "predictor", "predict", "--model", "prior", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """A cell of average pooling, and one of convolutions."""
    path = tmp_path / "cells.jsonl"
    path.write_text("".join(json.dumps({"architecture": nasbench201_string([op] * 6)}) + "\n" for op in (4, 3)))
    return path


def test_networks_that_nobody_trained_are_ordered(
    cells: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "f.csv"
    code, shown, _ = predict(capsys, "--reader", "nasbench201", "--data", cells, "--out", out)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert code == 0 and "2 predictions" in shown and "spread" not in rows[0]
    assert float(rows[1]["prediction"]) > float(rows[0]["prediction"])


def test_what_it_cannot_tell(cells: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = predict(capsys, "--reader", "nasbench201", "--data", cells, "--quantile", 0.5)
    assert code == 2 and "'prior' has no spread before a fit" in err and err.count("\n") == 1
    for option in (("--unseen", "nonsense"), ("--device", "cuda:7")):
        code, _, err = predict(capsys, "--reader", "nasbench201", "--data", cells, *option)
        assert code == 2 and err.count("\n") == 1
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"graph": random_graphs((5,))[0].to_dict()}) + "\n")
    code, _, err = predict(capsys, "--data", bare)
    assert code == 2 and "nothing says what the operations of these graphs do" in err and err.count("\n") == 1


def test_a_reader_describes_graphs_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "graphs.jsonl"
    graph = nasbench201_graph([3] * 6).to_dict()
    cell = nasbench201_string([4] * 6)
    path.write_text(json.dumps({"graph": graph}) + "\n" + json.dumps({"architecture": cell}) + "\n")
    code, shown, _ = predict(capsys, "--reader", "nasbench201", "--data", path)
    assert code == 0 and len(shown.splitlines()) >= 3
