"""Distillation losses against their definitions, finite differences, and each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.supernet.teacher.losses import distillation_loss
from tests.naive import naive_distillation_loss

ROWS, WORDS = 9, 13


def logits(seed: int, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(ROWS, WORDS, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_equals_the_definition(temperature: float) -> None:
    student, other, teacher = logits(0).requires_grad_(), logits(0).requires_grad_(), logits(1)
    loss = distillation_loss(student, teacher, temperature)
    expected = naive_distillation_loss(other, teacher, temperature)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss, student), torch.autograd.grad(expected, other), atol=1e-6, rtol=1e-5
    )
