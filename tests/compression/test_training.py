"""The loss and the learning rate of the training."""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from nas_core.compression import training
from nas_core.compression.pipeline import CompressConfig
from tests.compression.test_candidates import SPACE


def test_the_learning_rate_rises_and_decays_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE, training_batches=lambda size, seed: repeat(None))
    model, rates, adam = torch.nn.Linear(1, 1), list[float](), torch.optim.AdamW

    def step(self: torch.optim.AdamW) -> None:
        rates.append(self.param_groups[0]["lr"])

    monkeypatch.setattr(adam, "step", step)
    monkeypatch.setattr(training, "_loss", lambda *_: model(torch.ones(1, 1)).sum())
    assert training.distill(trained, model, model, CompressConfig(updates=100)) == 100
    highest = training.lr_of(trained, CompressConfig())
    assert highest == pytest.approx(0.2 / 64)
    assert len(rates) == 100 and max(rates) > 0.9 * highest and rates[-1] < 0.01 * highest
    assert rates[0] < 0.1 * highest and rates.index(max(rates)) == 10


def test_training_ends_at_a_gradient_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: Any = SimpleNamespace(space=SPACE, training_batches=lambda size, seed: repeat(None))
    model, scales = torch.nn.Linear(1, 1), iter([1.0, float("inf")])
    monkeypatch.setattr(training, "_loss", lambda *_: model(torch.ones(1, 1)).sum() * next(scales))
    assert training.distill(trained, model, model, CompressConfig(updates=100)) == 1
    assert model.weight.isfinite().all()


@pytest.mark.parametrize("sides", [(), ("",), ("encoder", "decoder")])
def test_the_loss_has_targets_probabilities_and_features(sides: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    model, teacher = (nn.Sequential(nn.Linear(size, size), nn.Linear(size, 5)) for size in (2, 3))
    batch, mask, targets = torch.randn(4, 6, 3), torch.rand(4, 6) > (0.4 if sides else -1), torch.randint(5, (4, 6))

    def features(network: Any) -> torch.Tensor:
        return network[0](batch[..., : network[0].in_features])

    def logits(network: Any, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return network[1](features(network))[mask], targets[mask]

    masks = {**dict.fromkeys(sides, torch.zeros(4, 6, dtype=torch.bool)), **dict.fromkeys(sides[-1:], mask)}
    trained: Any = SimpleNamespace(logits=logits, distance=lambda *_: None, token_masks=lambda _: masks)
    (student, labels), (soft, _) = logits(model, batch), logits(teacher, batch)
    divergence = functional.kl_div(student.log_softmax(-1), soft.softmax(-1), reduction="batchmean")
    cosine = functional.cosine_similarity(features(model)[mask], features(teacher)[mask][:, :2])
    expected = 0.7 * functional.cross_entropy(student, labels) + 0.3 * divergence + 2 * (1 - cosine.mean())
    config = CompressConfig(distill_weight=0.3, distill_features=2)
    torch.testing.assert_close(training._loss(trained, model, teacher, config, batch), expected)
