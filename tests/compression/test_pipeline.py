"""Latencies near the limit, and weights after a training that did harm."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from nas_core.compression import pipeline
from nas_core.compression.candidates import Candidate
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
    ("before", "after", "kept"),
    [(2.0, 1.0, True), (1.0, 1.0, True), (1.0, 2.0, False), (1.0, math.nan, False), (math.nan, 1.0, True)],
)
def test_weights_are_restored_if_training_raised_the_loss(
    before: float, after: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([before, after])
    model = torch.nn.Linear(2, 1)
    initial = model.weight.detach().clone()
    monkeypatch.setattr(pipeline, "evaluate", lambda *_: {"loss": next(losses)})
    monkeypatch.setattr(pipeline, "distill", lambda *_: torch.nn.init.constant_(model.weight, 9.0))
    updates = compression().train(Candidate("all", SPACE.largest(), {}, 1.0), model)
    assert updates == (3 if kept else 0)
    assert torch.equal(model.weight, torch.full((1, 2), 9.0) if kept else initial)
