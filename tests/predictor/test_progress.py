"""Checkpoints of an interrupted fit, and the learning curve that is kept with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nas_core.errors import ConfigError, DataError
from nas_core.predictor import NNFormer, NNFormerConfig, NNFormerPredictor
from nas_core.predictor import progress as module
from nas_core.predictor.artifact import write_artifact
from nas_core.predictor.progress import KIND, Checkpoint, LearningCurve
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


def test_a_resumed_training_has_the_losses_of_its_first_steps(tmp_path: Path) -> None:
    """Losses are written with the checkpoint: a killed process resumes with every step before it."""
    checkpoint, kept = tmp_path / "p.unfinished", tmp_path / "c.json"
    first = LearningCurve(kept, checkpoint)
    for step in range(1, 47):
        if step == 46:  # the state after 45 steps
            (tmp_path / "p.unfinished.0.safetensors").write_bytes(b"state")
        first.add(step, 1.0 / step)
    second = LearningCurve(kept, checkpoint)
    for step in range(46, 61):
        second.add(step, 2.0 / step)
    assert second.steps == list(range(1, 61))
    assert second.losses == [*(1 / s for s in range(1, 46)), *(2 / s for s in range(46, 61))]
    anew = LearningCurve(kept)
    anew.add(1, 5.0)
    assert anew.to_dict() == {"step": [1], "loss": [5.0]}
    anew.remove()
    assert not kept.exists()


def test_plots_show_means_by_network(tmp_path: Path) -> None:
    curve = LearningCurve(tmp_path / "c.json")
    for step in range(1, 401):
        curve.add(step, float(step))
    first, second = curve.thinned(2, points=50)
    assert len(first[0]) == len(second[0]) == 50
    assert first[0][0] == first[1][0] == 2.5 and second[0][0] == 2.5 and second[1][0] == 202.5
    assert LearningCurve(tmp_path / "c.json").thinned() == [([], [])]
