"""Each part of an update against its definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.predictor import NNFormer, NNFormerConfig
from nas_core.predictor import training as module
from nas_core.predictor.losses import ranking_loss, relative_loss
from nas_core.predictor.training import TrainConfig, Trainer
from tests.predictor.graphs import random_graphs, sizes_of_operations

GRAPHS = random_graphs((5, 6, 7) * 4, seed=1)
TARGETS = sizes_of_operations(GRAPHS) + 0.2 + 1e-3 * np.arange(len(GRAPHS))  # all different
PLAIN = TrainConfig(epochs=5, batch_size=4, lr=1e-3, precision="fp32")
FIRST, SECOND = torch.tensor([0.1, 0.4, 0.3]), torch.tensor([0.2, 0.4, 0.0])
PREDICTED, WANTED = torch.cat([FIRST, SECOND]), torch.tensor([0.3, 0.5, 0.2]).repeat(2)


def trainer_of(dropout: float = 0.1, config: TrainConfig = PLAIN, **changes: Any) -> Trainer:
    torch.manual_seed(0)
    model = NNFormer(NNFormerConfig(dim=16, depth=1, dropout=dropout))
    return Trainer(model, GRAPHS, TARGETS, replace(config, **changes))


OFF = {"rank_weight": 0.0, "consistency_weight": 0.0}
torch.manual_seed(3)
ORDER = torch.randperm(6)


def loss_of() -> Tensor:
    return trainer_of(**OFF).loss_of(PREDICTED, WANTED, 3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, np.mean([0.2**2, 0.1**2, 0.1**2, 0.1**2, 0.1**2, 0.2**2])),
        ({"loss": "relative"}, relative_loss(FIRST, WANTED[:3]) + relative_loss(SECOND, WANTED[:3])),  # as released
        ({"consistency_weight": 2.0}, loss_of() + 2 * (0.1 + 0.0 + 0.3) / 3),
        ({"rank_weight": 0.2}, loss_of() + 0.2 * ranking_loss(PREDICTED, WANTED, ORDER)),
    ],
)
def test_the_loss_is_the_sum_of_its_terms(changes: dict[str, Any], expected: Any) -> None:
    torch.manual_seed(3)
    trainer = trainer_of(**{**OFF, **changes})
    torch.manual_seed(3)
    assert trainer.loss_of(PREDICTED, WANTED, 3).item() == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_learning_rate(decay: str) -> None:
    trainer = trainer_of(decay=decay, warmup=0.2, final_lr=0.1, epochs=100)
    assert trainer.total == 300
    assert trainer.lr_factor(0) == 0
    assert trainer.lr_factor(30) == pytest.approx(0.5)
    assert trainer.lr_factor(60) == pytest.approx(1)
    assert trainer.lr_factor(180) == pytest.approx(0.1 + 0.9 * 0.5)
    quarter = {"cosine": (1 + 0.5**0.5) / 2, "linear": 0.75}[decay]
    assert trainer.lr_factor(120) == pytest.approx(0.1 + 0.9 * quarter)
    last = {"cosine": 0.5 * (1 + np.cos(np.pi * 239 / 240)), "linear": 1 / 240}[decay]
    assert trainer.lr_factor(299) == pytest.approx(0.1 + 0.9 * last, rel=1e-9)
    assert trainer_of(decay=decay, warmup=0.0, final_lr=0.0).lr_factor(0) == 1


def test_the_optimizer_gets_that_rate_and_its_first_step_changes_nothing() -> None:
    trainer = trainer_of(weight_decay=0.5)
    before = [p.detach().clone() for p in trainer.model.parameters()]
    rates = []
    for _ in trainer.steps():
        rates.append([float(group["lr"]) for group in trainer.optimizer.param_groups])
        if len(rates) == 1:
            assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    assert rates == [[pytest.approx(1e-3 * trainer.lr_factor(step))] * 2 for step in range(trainer.total)]
    assert not any(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True) if a.ndim > 1)


def test_averaged_weights() -> None:
    trainer = trainer_of(ema=0.8, lr=1e-2)
    expected = [p.detach().clone() for p in trainer.model.parameters()]
    for _ in trainer.steps():
        expected = [0.8 * a + 0.2 * p.detach() for a, p in zip(expected, trainer.model.parameters(), strict=True)]
    last = [p.detach().clone() for p in trainer.model.parameters()]
    torch.testing.assert_close(trainer.averaged, expected, rtol=1e-4, atol=1e-6)
    trainer.settle()
    torch.testing.assert_close(list(trainer.model.parameters()), trainer.averaged, rtol=0, atol=0)
    assert any(not torch.equal(a, b) for a, b in zip(last, trainer.model.parameters(), strict=True))
    plain = trainer_of(ema=0.0)
    for _ in plain.steps():
        last = [p.detach().clone() for p in plain.model.parameters()]
    plain.settle()
    assert not plain.averaged and all(torch.equal(a, b) for a, b in zip(last, plain.model.parameters(), strict=True))


def test_every_graph_is_seen_twice_in_each_epoch_with_graphs_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, recorded = trainer_of(batch_size=3, epochs=2), []
    loss = Trainer.loss_of

    def spied(self: Trainer, predicted: Tensor, target: Tensor, count: int) -> Tensor:
        assert len(predicted) == 2 * count and torch.equal(target[:count], target[count:])
        assert not torch.equal(predicted[:count], predicted[count:]), "dropout differs"
        recorded.append(target[:count].tolist())
        return loss(self, predicted, target, count)

    monkeypatch.setattr(Trainer, "loss_of", spied)
    trainer.model.eval()
    assert len(list(trainer.steps())) == trainer.total == 12
    sizes = {round(float(np.float32(t)), 6): int(size) for t, size in zip(TARGETS, GRAPHS.sizes, strict=True)}
    for epoch in (recorded[:6], recorded[6:]):
        assert sorted(v for batch in epoch for v in batch) == sorted(np.float32(TARGETS).tolist())
        assert all(len({sizes[round(v, 6)] for v in batch}) == 1 for batch in epoch)
    first, second = ({frozenset(batch) for batch in epoch} for epoch in (recorded[:6], recorded[6:]))
    assert first != second, "graphs meet others in each epoch"
    assert trainer_of(equal_sizes=False, batch_size=3).steps_per_epoch == 4


def test_divergence_is_an_error() -> None:
    for rate in (1e30, 1e38):
        trainer = trainer_of(lr=rate, warmup=0.0, epochs=60)
        with pytest.raises(ConfigError, match=r"training diverged: .* after step \d+ of 180; give a lower lr"):
            for _ in trainer.steps():
                pass
        assert trainer.done == module.CHECK_EVERY
    short = trainer_of(lr=1e38, warmup=0.0, epochs=2)
    with pytest.raises(ConfigError, match="after step 6 of 6"):
        for _ in short.steps():
            pass


def test_a_batch_in_parts_is_one_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_GRAPHS", 2)
    updates = []
    for positions in (10**6, 12):
        monkeypatch.setattr(module, "CHUNK_POSITIONS", positions)
        trainer = trainer_of(dropout=0.0, batch_size=64, rank_weight=0.0)
        assert trainer.buckets[0].chunk_count(4) == (1 if positions > 12 else 2)
        losses = [float(loss) for _, loss in zip(range(3), trainer.steps(), strict=False)]
        updates.append((losses, [x.detach().clone() for x in trainer.model.parameters()]))
    (full, expected), (parts, weights) = updates
    np.testing.assert_allclose(parts, full, rtol=1e-5)
    for a, b in zip(weights, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
