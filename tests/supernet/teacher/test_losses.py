"""Distillation losses against their definitions, finite differences, and each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.errors import NasExtError
from nas_core.supernet.teacher.losses import (
    TopK,
    distillation_loss,
    hidden_loss,
    kept_and_rest,
    naive_distillation_loss,
    naive_top_k_distillation_loss,
    top_k,
    top_k_distillation_loss,
)
from nas_core.supernet.teacher.projected import probabilities_of

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


def test_all_words_equal_the_whole_loss() -> None:
    student, teacher = logits(0), logits(1)
    torch.testing.assert_close(
        top_k_distillation_loss(student, top_k(teacher, WORDS, 2.0), 2.0), distillation_loss(student, teacher, 2.0)
    )


def test_gradients_by_finite_differences() -> None:
    student, teacher = logits(0).double().requires_grad_(), logits(1).double()
    kept = top_k(teacher, 3, 2.0)
    assert torch.autograd.gradcheck(lambda x: distillation_loss(x, teacher, 2.0), student)
    assert torch.autograd.gradcheck(lambda x: top_k_distillation_loss(x, kept, 2.0), student)
    assert torch.autograd.gradcheck(lambda x: hidden_loss(x, teacher[:, :7]), student)


def test_nothing_reaches_the_teacher() -> None:
    student, teacher = logits(0), logits(1).requires_grad_()
    for loss in (distillation_loss(student.requires_grad_(), teacher), hidden_loss(student, teacher)):
        loss.backward()
    assert teacher.grad is None and student.grad is not None


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
    assert float(hidden_loss(teacher[:, :5], teacher, normalised=False)) == 0
    assert float(hidden_loss(3 * teacher[:, :5] + 1, teacher)) == pytest.approx(0, abs=1e-4)
    assert float(hidden_loss(3 * teacher[:, :5], teacher, normalised=False)) == pytest.approx(
        float((2 * teacher[:, :5]).square().mean())
    )


def test_rows_that_do_not_count() -> None:
    student, teacher, mask = logits(0), logits(1), torch.arange(ROWS) < 4
    torch.testing.assert_close(hidden_loss(student, teacher, mask), hidden_loss(student[:4], teacher[:4]))
    assert float(hidden_loss(student, teacher, mask & False)) == 0
    only = torch.arange(ROWS) == 2
    torch.testing.assert_close(hidden_loss(student, teacher, only), hidden_loss(student[2:3], teacher[2:3]))


def test_rows_may_have_several_dimensions() -> None:
    """Sentences and their tokens: the last dimension is that of words, or of channels."""
    student, teacher = logits(0), logits(1)
    deep, deeper = student.view(3, 3, WORDS), teacher.view(3, 3, WORDS)
    for k in (1, 4, WORDS):
        kept, one = top_k(deeper, k), top_k(teacher, k)
        assert torch.equal(kept.indices.flatten(0, 1), one.indices)
        torch.testing.assert_close(top_k_distillation_loss(deep, kept), top_k_distillation_loss(student, one))
        torch.testing.assert_close(
            naive_top_k_distillation_loss(deep, kept), top_k_distillation_loss(student, one), atol=1e-5, rtol=1e-5
        )
        probabilities, rest = kept_and_rest(kept, WORDS)
        assert probabilities.shape == (3, 3, k) and rest.shape == (3, 3)
    torch.testing.assert_close(distillation_loss(deep, deeper), distillation_loss(student, teacher))
    torch.testing.assert_close(naive_distillation_loss(deep, deeper), distillation_loss(student, teacher))
    torch.testing.assert_close(hidden_loss(deep[..., :7], deeper), hidden_loss(student[:, :7], teacher))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: distillation_loss(logits(0), logits(1)[:, :5]), "(9, 5)"),
        (lambda: distillation_loss(logits(0), logits(1), 0.0), "0.0"),
        (lambda: distillation_loss(logits(0), logits(1), reduction="max"), "'max'"),
        (lambda: top_k(logits(0), 14), "14"),
        (lambda: top_k_distillation_loss(logits(0)[:2], top_k(logits(1), 2)), "(9, 2)"),
        (lambda: hidden_loss(logits(0)[:2], logits(1)), "(9, 13)"),
        (lambda: probabilities_of(logits(0), -1.0), "-1.0"),
    ],
)
def test_bad_input(call: Callable[[], Any], value: str) -> None:
    with pytest.raises(NasExtError) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
