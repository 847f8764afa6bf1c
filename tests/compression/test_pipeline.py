"""Latencies near the limit, and weights after a training that did harm."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nas_core.compression import pipeline
from nas_core.compression.pipeline import CompressConfig, Compression
from tests.compression.test_candidates import SPACE


def compression(**members: Any) -> Any:
    """A compression without a trained network."""
    made: Any = Compression.__new__(Compression)
    vars(made).update(config=CompressConfig(updates=3), selection=[], teacher=None, log=lambda text: None)
    vars(made).update(trained=SimpleNamespace(space=SPACE, static=lambda x: x, multiples={}), **members)
    return made


def test_latencies_near_the_limit_are_measured_again_and_once() -> None:
    shares, calls = {10: 0.5, 40: 0.45}, list[int]()

    def share(model: Any, repeats: int = 10) -> float:
        calls.append(repeats)
        return shares[repeats]

    made = compression(share=share, _shares={}, _precise=set())
    far, near = made.fitting(0.9), made.fitting(0.5)
    assert far.share(SPACE.largest()) == 0.5 and calls == [10]
    assert near.share(SPACE.largest()) == near.share(SPACE.largest()) == 0.45 and calls == [10, 40]
    assert made.fitting(0.48).share(SPACE.smallest()) == 0.45 and calls == [10, 40, 10, 40]


@pytest.mark.parametrize(
    ("before", "after", "updates", "kept"),
    [
        (2.0, 1.0, 3, True),
        (1.0, 1.0, 3, True),
        (1.0, 2.0, 3, False),
        (1.0, math.nan, 3, False),
        (math.nan, 1.0, 3, True),
        (2.0, 1.0, 1, False),  # diverged at the second update
    ],
)
def test_weights_are_restored_if_training_raised_the_loss_or_diverged(
    before: float, after: float, updates: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([before, after])
    model = torch.nn.Linear(2, 1)
    initial = model.weight.detach().clone()

    def distill(*_: Any) -> int:
        torch.nn.init.constant_(model.weight, 9.0)
        return updates

    monkeypatch.setattr(pipeline, "evaluate", lambda *_: {"loss": next(losses)})
    monkeypatch.setattr(pipeline, "distill", distill)
    assert compression().train(model) == (3 if kept else 0)
    assert torch.equal(model.weight, torch.full((1, 2), 9.0) if kept else initial)
