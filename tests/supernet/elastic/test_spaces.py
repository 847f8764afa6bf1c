"""Sizes around a trained one."""

from __future__ import annotations

import pytest

from nas_core.errors import ConfigError
from nas_core.supernet.elastic.spaces import FFN, HEADS, WIDTHS, around, depths


def test_options_begin_with_the_trained_size_and_fall() -> None:
    assert around(512, WIDTHS, 8) == (512, 448, 384, 320)
    assert around(4, HEADS) == (4, 3, 2) and around(1, HEADS) == (1,)
    assert around(2048, FFN, 64) == (2048, 1536, 1024, 512)
    assert around(100, (1.0, 0.8), 64) == (100, 64), "a smaller size is a multiple, the trained one need not be"


def test_depths_go_down_to_the_share() -> None:
    assert depths(6) == (6, 5, 4, 3) and depths(5) == (5, 4, 3) and depths(1) == (1,)
    assert depths(6, 0.01) == (6, 5, 4, 3, 2, 1)


@pytest.mark.parametrize(
    ("size", "shares", "multiple"), [(0, (1.0,), 1), (8, (1.5,), 1), (8, (0.0,), 1), (8, (1.0,), 0)]
)
def test_no_size(size: int, shares: tuple[float, ...], multiple: int) -> None:
    with pytest.raises(ConfigError, match="expected a size above 0"):
        around(size, shares, multiple)
