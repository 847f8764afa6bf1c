"""An accuracy model of another distribution: through the contract, the command line and NASLib's interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nas_core.cli import main
from nas_core.predictor import ACCURACY_MODELS, load_accuracy_model
from naslib_ext import AccuracyPredictor
from tests.contracts.accuracy_model import AccuracyModelContract
from tests.naslib_ext.fakes import sampled
from tests.toys import plug_in


@pytest.fixture(scope="module", autouse=True)
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("site")
        plug_in(folder, patch, "nas_ext.accuracy_models", "ridge", "examples.plugins.accuracy_model:RidgePredictor")
        yield


class TestRidge(AccuracyModelContract):
    name = "ridge"
    settings = {"strength": 0.1}  # noqa: RUF012 - never changed


def test_it_trains_and_predicts_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = np.random.default_rng(0).integers(1, 5, (40, 6)).tolist()
    data, model = tmp_path / "cells.jsonl", tmp_path / "ridge.safetensors"
    data.write_text("".join(json.dumps({"architecture": c, "acc": 60 + 4 * c.count(3)}) + "\n" for c in cells))
    train = ["lab", "predictor", "train", "--data", str(data), "--out", str(model), "--reader", "nasbench201"]
    train += ["--target", "acc", "--model", "ridge"]
    assert main([*train, "--set", "strength=0.01"]) == 0
    out = capsys.readouterr().out
    assert "held out: 4 graphs" in out and "ridge predictor of 'acc'" in out
    assert type(load_accuracy_model(model)) is ACCURACY_MODELS.get("ridge")
    assert main(["lab", "predictor", "predict", "--model", str(model), "--data", str(data)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 42


def test_naslib_takes_it_by_name() -> None:
    architectures = sampled("nasbench201", 40)
    accuracies = [60 + 4.0 * architecture.op_indices.count(2) for architecture in architectures]
    predictor = AccuracyPredictor("nasbench201", model="ridge", strength=0.01)
    np.random.seed(0)
    predictor.fit(architectures[:30], accuracies[:30])
    assert predictor.get_hyperparams() == {"strength": 0.01}
    assert np.corrcoef(predictor.query(architectures[30:]), accuracies[30:])[0, 1] > 0.5
