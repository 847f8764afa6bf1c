"""Draws before and after a block with streams of its own are those of a program without the block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from nas_core.models.workload import same_draws
from nas_core.random_streams import own_streams, seed_streams


def draws(device: str, between: Callable[[], object]) -> list[Tensor]:
    torch.manual_seed(7)
    places = ("cpu", device)
    before = [torch.rand(3, device=place) for place in places]
    between()
    return before + [torch.rand(3, device=place) for place in places]


def seeded_inside(device: str) -> Callable[[], Tensor]:
    def run() -> Tensor:
        with own_streams(5, device):
            first = torch.rand(4, device=device)
            seed_streams(5, device)
            repeated = torch.rand(4, device=device)
            assert torch.equal(first, repeated)
            return first

    return run


def seeded_by_others() -> None:
    with own_streams():
        torch.manual_seed(3)


def drawn_alike() -> None:
    with same_draws():
        torch.rand(9)


def interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), own_streams(1):
        raise KeyboardInterrupt


@pytest.mark.parametrize("block", [seeded_by_others, drawn_alike, interrupted])
def test_the_callers_draws(device: str, block: Callable[[], None]) -> None:
    expected = draws(device, lambda: None)
    assert all(torch.equal(a, b) for a, b in zip(draws(device, block), expected, strict=True))


def test_a_seed_holds_on_the_device(device: str) -> None:
    expected, result = draws(device, lambda: None), []
    assert all(
        torch.equal(a, b)
        for a, b in zip(draws(device, lambda: result.append(seeded_inside(device)())), expected, strict=True)
    )
    torch.manual_seed(99)
    assert torch.equal(result[0], seeded_inside(device)())


def test_a_second_device_keeps_its_own(second_device: str) -> None:
    torch.manual_seed(4)
    expected = torch.rand(3, device=second_device)
    torch.manual_seed(4)
    with own_streams(8, "cpu"):
        torch.rand(3)
    seeded_inside(second_device)()
    assert torch.equal(torch.rand(3, device=second_device), expected)


def test_the_stream_is_that_of_the_seed() -> None:
    with own_streams(11):
        ours = torch.rand(3)
    np.testing.assert_array_equal(ours, torch.rand(3, generator=torch.Generator().manual_seed(11)))
