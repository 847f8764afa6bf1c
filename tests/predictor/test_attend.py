"""Short attention equals the library's, for scores of any size."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.predictor.nn_former.attend import SHORT, attend, dropout, short_softmax

SCALES = (1.0, 30.0, 1000.0)


def plain(projected: Tensor, heads: int, mask: Tensor) -> Tensor:
    """In float64, with the definition."""
    batch, length, width = projected.shape
    q, k, v = projected.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~mask, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width // 3)


@pytest.mark.parametrize("length", [1, 9, SHORT + 3])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_outputs_and_gradients(length: int, scale: float, share: float) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(5, length, 3 * 16)
    inputs[..., :16] *= scale
    mask = (torch.rand(5, 4, length, length) < share) | torch.eye(length, dtype=torch.bool)
    weighting = torch.randn(5, length, 16)
    results = []
    for function, x in ((attend, inputs.clone()), (plain, inputs.double())):
        x.requires_grad_()
        mixed = function(x, 4, mask)
        (mixed * weighting).sum().backward()
        assert x.grad is not None
        results.append((mixed.double(), x.grad.double()))
    (ours, gradient), (expected, reference) = results
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-5 * scale)
    torch.testing.assert_close(gradient, reference, rtol=1e-3, atol=1e-5 * scale * float(reference.abs().max()))


def test_a_masked_score_of_any_size_has_no_weight() -> None:
    q, k = torch.ones(1, 2, 1), torch.tensor([[[1.0], [500.0], [-300.0]]])
    mask = torch.tensor([[[[True, False, True], [True, True, True]]]])
    weights = short_softmax(q, k, mask)
    torch.testing.assert_close(weights, torch.tensor([[[1.0, 0, 0], [0, 1.0, 0]]]))
    torch.testing.assert_close(short_softmax(q, -k * 300, mask.float())[0, 0], torch.tensor([0.0, 0, 1.0]))
    apart = torch.tensor([[[-200.0], [-201.0], [-500.0]]])
    torch.testing.assert_close(
        short_softmax(q, apart, torch.ones_like(mask))[0, 0], torch.tensor([0.7310586, 0.2689414, 0.0])
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("probability", [0.05, 0.5])
def test_dropout_has_its_probability_and_keeps_the_mean(probability: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    dropped = dropout(torch.ones(400, 501, dtype=dtype), probability, True).float()
    assert (dropped == 0).float().mean().item() == pytest.approx(probability, abs=4e-3)
    assert dropped.mean().item() == pytest.approx(1.0, abs=1e-2) and len(dropped.unique()) == 2
    assert dropout(dropped, probability, False) is dropped
