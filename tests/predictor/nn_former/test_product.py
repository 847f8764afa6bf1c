"""Products with weights laid out once."""

from __future__ import annotations

import pytest
import torch

from nas_core.predictor.nn_former.scorer import Product

ROWS = (1, 9, 130)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equal_torchs_own(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = torch.randn(24, 40)
    product = Product(weight, dtype)
    limit = 1e-5 if dtype == torch.float32 else 0.1
    with torch.inference_mode():
        for rows in ROWS:
            x, other = torch.randn(rows, 40).to(dtype), torch.randn(rows, 24).to(dtype)
            expected = x.float() @ weight.to(dtype).float().T
            for found, wanted in (
                (product(x), expected),
                (product.relu(x), expected.relu()),
                (product.added(x, other), expected + other.float()),
            ):
                assert found.dtype == dtype and found.shape == (rows, 24)
                torch.testing.assert_close(found.float(), wanted, atol=limit, rtol=limit)
