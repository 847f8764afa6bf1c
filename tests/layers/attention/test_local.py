"""Local attention: what its window reads, what its ring keeps, and what it costs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from nas_core.layers.attention import LocalAttention


def read_by(kind: LocalAttention, length: int, causal: bool) -> list[list[int]]:
    """The positions that each position reads: whose values it gives."""
    q, k = torch.randn(2, 1, 1, length, length, dtype=torch.double).unbind(0)
    rows: Tensor = kind.attend(q, k, torch.eye(length, dtype=torch.double)[None, None], causal=causal)
    return [row.nonzero().flatten().tolist() for row in rows[0, 0]]


@pytest.mark.parametrize("length", [4, 11, 40])
def test_the_window_is_the_last_positions_or_half_on_either_side(length: int) -> None:
    kind = LocalAttention(5)
    assert read_by(kind, length, True) == [list(range(max(0, i - 4), i + 1)) for i in range(length)]
    around = [list(range(max(0, i - 2), min(length, i + 3))) for i in range(length)]
    assert read_by(kind, length, False) == around
    q, k = torch.randn(2, 1, 1, length, 4).unbind(0)
    assert [row.nonzero().flatten().tolist() for row in kind.weights(q, k)[0, 0]] == around


@pytest.mark.parametrize("causal", [False, True])
def test_its_cost_grows_with_the_length(causal: bool) -> None:
    kind = LocalAttention()
    counted = []
    for length in (7, 31, 500, 2000):
        q = torch.zeros(1, 2, length, 32)
        with FlopCounterMode(display=False) as counter:
            kind.attend(q, q, q, causal=causal)
        assert counter.get_total_flops() == 2 * kind.macs(length, length, 64, 2, causal=causal)
        counted.append(counter.get_total_flops())
    assert counted[3] / counted[2] < 4.1
    assert counted[0] == 2 * 2 * 7 * 7 * 64


def test_large_numbers_stay_finite_in_half_precision() -> None:
    """Their scaled product is a number that half precision has; their product is not."""
    large = torch.full((1, 1, 65, 32), 60.0, dtype=torch.half)
    read = LocalAttention().attend(large, large, torch.ones_like(large))
    torch.testing.assert_close(read, torch.ones_like(read))
