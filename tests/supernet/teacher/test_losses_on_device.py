"""Losses of learning from a teacher in each precision, on each device."""

from __future__ import annotations

import pytest
import torch

from nas_core.precision import computing_in, half_type
from nas_core.supernet.teacher.losses import (
    distillation_loss,
    hidden_loss,
    naive_distillation_loss,
    naive_top_k_distillation_loss,
    top_k,
    top_k_distillation_loss,
)
from tests.devices import PRECISIONS, close_in
from tests.host_reads import no_host_reads

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
        kept = top_k(theirs, 8, 2.0)
        losses = (
            distillation_loss(ours, theirs, 2.0),
            top_k_distillation_loss(ours, kept, 2.0),
            hidden_loss(ours, theirs),
        )
        assert all(loss.dtype == torch.float32 for loss in losses)
        (losses[0] + losses[1]).backward()
    expected = (
        naive_distillation_loss(exact, rounded, 2.0),
        naive_top_k_distillation_loss(exact, top_k(rounded, 8, 2.0), 2.0),
    )
    (expected[0] + expected[1]).backward()
    for loss, reference in zip(losses[:2], expected, strict=True):
        close_in("fp32", loss, reference, times=10)
    assert ours.grad is not None and exact.grad is not None
    close_in("fp32" if half is None else precision, ours.grad, exact.grad, times=10)
