"""``nas-ext lab predictor predict --model prior``: networks that nobody trained."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.graph import nasbench201_string


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
