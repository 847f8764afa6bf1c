"""Dropout from bytes."""

from __future__ import annotations

import pytest
import torch

from nas_core.predictor.nn_former.attend import dropout


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
    first, second = (torch.manual_seed(s) and dropout(x, 0.5, True) for s in (3, 3))
    torch.testing.assert_close(first, second)
