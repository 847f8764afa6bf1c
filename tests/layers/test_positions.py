"""Sinusoidal positions."""

from __future__ import annotations

import math

import pytest
import torch

from nas_core.layers.positions import SinusoidalPositions, sinusoids


@pytest.mark.parametrize("width", [2, 6, 7, 640])
def test_table_equals_its_definition(width: int) -> None:
    table = sinusoids(9, width)
    half = width // 2
    for position in range(9):
        for channel in range(half):
            angle = position / 10000 ** (channel / max(half - 1, 1))
            assert table[position, channel] == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, half + channel] == pytest.approx(math.cos(angle), abs=1e-5)
    assert not table[:, 2 * half :].any()


def test_subnets_read_a_prefix_of_the_supernets_table() -> None:
    positions = SinusoidalPositions(16)
    assert torch.equal(positions(5, 12), sinusoids(5, 16)[:, :12])
    assert not torch.allclose(positions(5, 12), sinusoids(5, 12))
