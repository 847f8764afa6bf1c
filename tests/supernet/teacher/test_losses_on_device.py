"""Losses of learning from a teacher in each precision, on each device."""

from __future__ import annotations

import pytest
import torch

from nas_core.precision import computing_in, half_type
from nas_core.supernet.teacher.losses import distillation_loss
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads
from tests.naive import naive_distillation_loss

ROWS, WORDS = 40, 300


@pytest.mark.parametrize("how", ["amp", "cast"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_values_and_gradients(precision: str, how: str, device: str) -> None:
    generator = torch.Generator().manual_seed(0)
    student, teacher = (4 * torch.randn(ROWS, WORDS, generator=generator) for _ in range(2))
    half = half_type(precision) if how == "cast" else None
    ours, theirs = (x.to(device, half or torch.float) for x in (student, teacher))
    ours.requires_grad_()
    exact, rounded = ours.detach().float().cpu().requires_grad_(), theirs.float().cpu()
    with no_host_reads(device), computing_in(precision if how == "amp" else "fp32", device):
        loss = distillation_loss(ours, theirs, 2.0)
        assert loss.dtype == torch.float32
        loss.backward()
    expected = naive_distillation_loss(exact, rounded, 2.0)
    expected.backward()
    close_in("fp32", loss, expected, times=10)
    assert ours.grad is not None and exact.grad is not None
    close_in("fp32" if half is None else precision, ours.grad, exact.grad, times=10)
