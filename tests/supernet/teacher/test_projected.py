"""The fused output projection, own loss and distillation loss against their definitions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.layers import smoothed_loss
from nas_core.supernet.teacher.projected import distilled_loss, probabilities_of, projected_distilled_loss
from tests.naive import naive_distilled_loss

PAD, WORDS, WIDTH, ROWS = 1, 13, 7, 11


def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features, table, target, and a teacher's logits."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(ROWS, WIDTH, generator=generator).requires_grad_()
    table = torch.randn(WORDS, WIDTH, generator=generator).requires_grad_()
    target = torch.randint(2, WORDS, (ROWS,), generator=generator)
    target[[0, 4, 10]] = PAD
    return features, table, target, 2 * torch.randn(ROWS, WORDS, generator=generator)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_equals_the_definition(weight: float, temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothed_loss, "_MIN_ROWS", 1)
    monkeypatch.setattr(smoothed_loss, "_CHUNK_ELEMENTS", 3 * WORDS + 5)
    features, table, target, logits = data()
    f2, t2, _, _ = data()
    settings: dict[str, Any] = {
        "weight": weight, "temperature": temperature, "smoothing": 0.1, "padding_idx": PAD
    }  # fmt: skip
    teacher = probabilities_of(logits, temperature)
    result = projected_distilled_loss(features, table, target, teacher, **settings)
    unfused = distilled_loss((features @ table.t()).detach(), target, teacher, **settings)
    torch.testing.assert_close(tuple(unfused), tuple(x.detach() for x in result), atol=1e-4, rtol=1e-5)
    expected = naive_distilled_loss(f2, t2, target, teacher, **settings)
    torch.testing.assert_close(tuple(result), tuple(x.detach() for x in expected), atol=1e-4, rtol=1e-5)
    (result.loss * 0.37).backward()
    (expected.loss * 0.37).backward()
    torch.testing.assert_close(features.grad, f2.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(table.grad, t2.grad, atol=1e-5, rtol=1e-5)
    assert features.grad is not None and not features.grad[[0, 4, 10]].any()
    assert not any(x.requires_grad for x in result[1:])


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_probabilities_are_the_softmax(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothed_loss, "_MIN_ROWS", 1)
    monkeypatch.setattr(smoothed_loss, "_CHUNK_ELEMENTS", 4 * WORDS)
    features, table, _, _ = data()
    logits = features @ table.t()
    result = probabilities_of(logits, temperature)
    torch.testing.assert_close(result.probabilities, (logits / temperature).softmax(1).detach())
    entropy = (result.probabilities * result.probabilities.log()).sum(1)
    torch.testing.assert_close(result.negative_entropy, entropy)
    assert not result.probabilities.requires_grad


def test_gradients_at_high_temperatures_are_finite_in_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device that gives products of halves in float32, where gradients of logits are scaled up."""
    monkeypatch.setattr(smoothed_loss, "supports_fp32_output", lambda *_: True)
    monkeypatch.setattr(smoothed_loss, "_mm_fp32", lambda a, b: a.float() @ b.float())
    results, expected = [], []
    for kind, gradients in ((torch.float16, results), (torch.float32, expected)):
        features, table, target, logits = data()
        features, table = (x.detach().half().to(kind).requires_grad_() for x in (features, table))
        projected_distilled_loss(
            features, table, target, probabilities_of(1000 * logits, 300.0),
            weight=0.9, temperature=300.0, smoothing=0.1, padding_idx=PAD,
        ).loss.backward()  # fmt: skip
        gradients += [features.grad, table.grad]
    for half, exact in zip(results, expected, strict=True):
        torch.testing.assert_close(half.float(), exact, atol=0.5, rtol=1e-2)
