"""The fused loss with a teacher in each precision, on each device."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nas_core.layers import smoothed_loss
from nas_core.precision import computing_in, half_type
from nas_core.supernet.teacher.projected import probabilities_of, projected_distilled_loss
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads
from tests.naive import naive_distilled_loss

PAD, WORDS, WIDTH, ROWS = 1, 200, 32, 150


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_values_and_gradients(precision: str, how: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothed_loss, "_CHUNK_ELEMENTS", 70 * WORDS // (1 if device == "cpu" else 256))
    half = half_type(precision) if how == "cast" else None
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(ROWS, WIDTH, generator=generator).to(device, half or torch.float).requires_grad_()
    table = (0.3 * torch.randn(WORDS, WIDTH, generator=generator)).to(device, half or torch.float).requires_grad_()
    target = torch.randint(0, WORDS, (ROWS,), generator=generator)
    logits = 2 * torch.randn(ROWS, WORDS, generator=generator)
    on_device, teacher_logits = target.to(device), logits.to(device, half or torch.float)
    f2, t2 = (x.detach().float().cpu().requires_grad_() for x in (features, table))
    rounded = teacher_logits.float().cpu()
    settings: dict[str, Any] = {"weight": 0.6, "temperature": 2.0, "smoothing": 0.1, "padding_idx": PAD}
    expected = naive_distilled_loss(f2, t2, target, probabilities_of(rounded, 2.0), **settings)
    expected.loss.backward()
    with no_host_reads(device), computing_in(precision if how == "amp" else "fp32", device):
        teacher = probabilities_of(teacher_logits, 2.0)
        result = projected_distilled_loss(features, table, on_device, teacher, **settings)
        result.loss.backward()
    assert result.loss.dtype == torch.float32
    for value, reference in zip(result, expected, strict=True):
        close_in(precision, value, reference)
    assert features.grad is not None and table.grad is not None
    close_in(precision, features.grad, f2.grad, times=4)  # type: ignore[arg-type]
    close_in(precision, table.grad, t2.grad, times=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_probabilities(precision: str, device: str) -> None:
    generator = torch.Generator().manual_seed(0)
    features, table = torch.randn(9, WIDTH, generator=generator), torch.randn(WORDS, WIDTH, generator=generator)
    with computing_in(precision, device):
        result = probabilities_of(features.to(device) @ table.to(device).t())
    assert result.probabilities.dtype == torch.float32
    expected = probabilities_of(features @ table.t())
    close_in(precision, result.probabilities, expected.probabilities, times=10)
