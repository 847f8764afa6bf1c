"""Checkpoints of an interrupted fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError
from nas_core.predictor import NNFormer, NNFormerConfig, NNFormerPredictor
from nas_core.predictor import progress as module
from nas_core.predictor.artifact import write_artifact
from nas_core.predictor.progress import KIND, Checkpoint
from nas_core.predictor.training import TrainConfig, Trainer
from tests.predictor.graphs import random_graphs, sizes_of_operations

GRAPHS = random_graphs((5, 6, 7) * 4, seed=1)
TARGETS = sizes_of_operations(GRAPHS)
TINY = {"dim": 16, "depth": 1, "epochs": 2, "members": 2}


def made() -> Trainer:
    return Trainer(NNFormer(NNFormerConfig.accuracy(dim=16, depth=1)), GRAPHS, TARGETS, TrainConfig(epochs=2))


def test_it_removes_its_own_files_alone(tmp_path: Path) -> None:
    others = {tmp_path / f"f*t{more}": more for more in (".safetensors", ".mine.safetensors", ".2.safetensors", "")}
    others |= {tmp_path / "fit.0.safetensors": "b"}
    for path, text in others.items():
        path.write_text(text)
    NNFormerPredictor("paper", **TINY).fit(GRAPHS, TARGETS, checkpoint=tmp_path / "f*t")
    assert {path: path.read_text() for path in tmp_path.iterdir()} == others


def test_a_diverged_training_keeps_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    keeper, trainer = Checkpoint(tmp_path / "fit", {}), made()
    next(trainer.steps())
    keeper.save(0, trainer.state, False)
    before = (tmp_path / "fit.0.safetensors").read_bytes()
    with torch.no_grad():
        next(trainer.model.parameters()).fill_(np.nan)
    with pytest.raises(ConfigError, match="diverged"):
        keeper.save(0, trainer.state, False)
    assert (tmp_path / "fit.0.safetensors").read_bytes() == before


def test_damaged_checkpoints(tmp_path: Path) -> None:
    path, keeper, trainer = tmp_path / "fit.0.safetensors", Checkpoint(tmp_path / "fit", {"a": 1}), made()
    state = trainer.state()
    for header, tensors in (
        ({"begun": 3}, state),
        ({}, state),
        ({"begun": {"a": 1}}, {k: v for k, v in state.items() if k != "done"}),
        ({"begun": {"a": 1}}, {**state, "done": torch.tensor(7)}),
        ({"begun": {"a": 1}}, {**state, "model.head.weight": torch.zeros(3)}),
    ):
        write_artifact(path, KIND, header, tensors)
        with pytest.raises(DataError, match=r"checkpoint is damaged .*remove it"):
            keeper.load(0, trainer.restore)
    keeper.remove()
    assert path.exists(), "what could not be read is not removed"
