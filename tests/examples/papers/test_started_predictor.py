"""The experiment for accuracy from graphs: two updates with the paper's settings, and the predictions after them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nas_core.cli import main
from nas_core.predictor import NNFormerPredictor
from nas_core.predictor.recipes import get_recipe
from tests.examples.papers.conftest import words


def test_two_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[1, 2, 3, 4, 1, 2], [2, 2, 3, 4, 1, 1], [3, 2, 3, 1, 1, 2], [4, 4, 3, 1, 2, 2]]
    records = [{"architecture": row, "target": sum(row) / 100} for row in rows]
    data = tmp_path / "few.jsonl"
    data.write_text("".join(json.dumps(record) + "\n" for record in records))
    settings = {"DATA": data, "TEST": data, "READER": "nasbench201", "OUT": tmp_path / "run"}
    train = words("nn_former", "train", **settings)[1:]
    train[train.index("epochs=3000")] = "epochs=2"
    assert main(train) == 0
    predictor = NNFormerPredictor.load(tmp_path / "run" / "accuracy.safetensors")
    paper = get_recipe("paper")
    trained = predictor.recipe
    assert replace(trained.train, epochs=3000) == paper.train
    for name in ("dim", "depth", "heads", "dropout", "sibling_mask"):
        assert getattr(trained.model, name) == getattr(paper.model, name)
    assert main(words("nn_former", "predict", **settings)[1:]) == 0
    assert len((tmp_path / "run" / "predictions.csv").read_text().splitlines()) == 1 + len(rows)
