"""Dropout from bytes."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nas_core.predictor.nn_former.dropout import dropout, relu_dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5])
def test_share_and_mean(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    dropped = dropout(torch.ones(400, 501, dtype=dtype), probability, True).float()
    assert (dropped == 0).float().mean().item() == pytest.approx(probability, abs=4e-3)
    assert dropped.mean().item() == pytest.approx(1.0, abs=1e-2)
    assert len(dropped.unique()) == 2


def test_off_and_repeatable() -> None:
    x = torch.randn(7, 9)
    assert dropout(x, 0.1, False) is x and dropout(x, 0.0, True) is x
    torch.testing.assert_close(relu_dropout(x, 0.1, False), functional.relu(x))
    first, second = (torch.manual_seed(s) and dropout(x, 0.5, True) for s in (3, 3))
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relu_dropout_and_its_gradient(dtype: torch.dtype) -> None:
    x = torch.randn(60, 70, dtype=dtype)
    x[0, :3] = torch.tensor([0.0, -0.0, -1e-30])
    torch.manual_seed(1)
    ours = relu_dropout(x.requires_grad_(), 0.25, True)
    ours.sum().backward()
    torch.manual_seed(1)
    mask = dropout(torch.ones_like(x), 0.25, True)
    torch.testing.assert_close(ours, functional.relu(x) * mask)
    torch.testing.assert_close(x.grad, mask * (x > 0))
