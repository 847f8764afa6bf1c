"""The fused output projection and label-smoothed loss against its definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from nas_core.layers import smoothed_loss
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from tests.naive import naive_smoothed_loss

PAD, VOCAB, WIDTH, ROWS = 1, 13, 7, 11


def data(dtype: torch.dtype = torch.float) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(ROWS, WIDTH, generator=generator).to(dtype).requires_grad_()
    table = torch.randn(VOCAB, WIDTH, generator=generator).to(dtype).requires_grad_()
    target = torch.randint(2, VOCAB, (ROWS,), generator=generator)
    target[[0, 4, 5, 10]] = PAD
    return features, table, target


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("chunk", [VOCAB, 3 * VOCAB + 5, 1 << 21])
def test_equals_the_definition(smoothing: float, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothed_loss, "_MIN_ROWS", 1)
    monkeypatch.setattr(smoothed_loss, "_CHUNK_ELEMENTS", chunk)
    (features, table, target), (f2, t2, _) = data(), data()
    loss, nll = projected_smoothed_loss(features, table, target, smoothing, PAD)
    expected, expected_nll = naive_smoothed_loss(f2, t2, target, smoothing, PAD)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, expected_nll.detach())
    (loss * 0.37).backward()
    (expected * 0.37).backward()
    torch.testing.assert_close(features.grad, f2.grad, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(table.grad, t2.grad, atol=1e-5, rtol=1e-5)
    assert features.grad is not None
    assert not features.grad[[0, 4, 5, 10]].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_definition_equals_torchs_with_the_smoothing_of_fairseq(smoothing: float) -> None:
    """torch spreads over all V words, fairseq over the V - 1 others."""
    features, table, target = data()
    loss, nll = naive_smoothed_loss(features, table, target, smoothing, PAD)
    logits = features @ table.t()
    spread = smoothing * VOCAB / (VOCAB - 1)
    torch.testing.assert_close(
        loss, F.cross_entropy(logits, target, ignore_index=PAD, reduction="sum", label_smoothing=spread)
    )
    torch.testing.assert_close(nll, F.cross_entropy(logits, target, ignore_index=PAD, reduction="sum"))


def test_without_gradients_nothing_but_the_projection_is_computed() -> None:
    features, table, target = data()
    expected = projected_smoothed_loss(features, table, target, 0.1, PAD)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        loss, nll = projected_smoothed_loss(features, table, target, 0.1, PAD)
    assert not loss.requires_grad
    assert (loss, nll) == (expected[0].detach(), expected[1])
    assert counter.get_total_flops() == 2 * ROWS * VOCAB * WIDTH
