"""Distillation losses against their definitions, finite differences, and each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.supernet.teacher.losses import (
    TopK,
    distillation_loss,
    hidden_loss,
    naive_distillation_loss,
    naive_top_k_distillation_loss,
    top_k,
    top_k_distillation_loss,
)

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


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("k", [1, 4, WORDS - 1])
def test_most_probable_words_equal_the_definition(k: int, temperature: float) -> None:
    student, other = logits(0).requires_grad_(), logits(0).requires_grad_()
    kept = top_k(logits(1), k, temperature)
    loss = top_k_distillation_loss(student, kept, temperature)
    expected = naive_top_k_distillation_loss(other, kept, temperature)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        torch.autograd.grad(loss, student), torch.autograd.grad(expected, other), atol=1e-5, rtol=1e-5
    )


def test_probabilities_that_were_rounded() -> None:
    """Those on disk may sum to more than 1, or leave nothing for the other words."""
    kept = TopK(torch.tensor([[0.75, 0.2505], [1.0, 0.0]]), torch.tensor([[0, 1], [2, 3]]))
    student = logits(0)[:2].requires_grad_()
    loss = top_k_distillation_loss(student, kept, reduction="none")
    loss.sum().backward()
    assert torch.isfinite(loss).all() and student.grad is not None and torch.isfinite(student.grad).all()
    assert float(loss[1].detach()) == pytest.approx(float(-student[1].detach().log_softmax(-1)[2]), rel=1e-5)


def test_hidden_states_are_compared_over_the_first_channels() -> None:
    teacher = logits(1)
    assert float(hidden_loss(3 * teacher[:, :5] + 1, teacher)) == pytest.approx(0, abs=1e-4)
