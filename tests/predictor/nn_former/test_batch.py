"""Updates of a trainer whose batches are computed in parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, Trainer, get_recipe
from nas_core.predictor.training import trainer as trainer_module
from tests.predictor.graphs import TINY


def test_a_batch_in_parts_is_one_update(graphs: Graphs, targets: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = get_recipe("paper").changed(
        **{**TINY, "batch_size": 64, "dropout": 0.0, "rank_weight": 0.0, "precision": "fp32"}
    )
    updates = []
    for positions in (10**6, 50):
        monkeypatch.setattr(trainer_module, "PART_POSITIONS", positions)
        monkeypatch.setattr(trainer_module, "PART_GRAPHS", 2)
        torch.manual_seed(0)
        trainer = Trainer(NNFormer(recipe.model), graphs, targets, recipe.train)
        most = max(bucket.parts(len(bucket)) for bucket in trainer.buckets)
        assert most == 1 if positions > 50 else most > 2
        losses = [float(loss) for _, loss in zip(range(3), trainer.steps(), strict=False)]
        updates.append((losses, [x.detach().clone() for x in trainer.model.parameters()]))
    (whole, expected), (parts, got) = updates
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_training_keeps_no_history(graphs: Graphs, targets: np.ndarray) -> None:
    recipe = get_recipe("paper").changed(**TINY)
    trainer = Trainer(NNFormer(recipe.model), graphs, targets, recipe.train)
    for _ in trainer.steps():
        assert not any(average.requires_grad for average in trainer.averaged)
    assert trainer.averaged and trainer.done == trainer.total
