"""Options around the sizes of a trained network."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTHS = (1.0, 0.875, 0.75, 0.625)
"""Fractions of a trained width."""
HEADS = (1.0, 0.75, 0.5)
"""Fractions of the heads of each attention."""
FFN = (1.0, 0.75, 0.5, 0.25)
"""Fractions of the hidden units of each feed-forward layer."""
DEPTHS = 0.5
"""Smallest fraction of the layers of a side."""
_MULTIPLE = 16


def around(size: int, shares: Sequence[float], multiple: int = 1) -> tuple[int, ...]:
    """Return distinct sizes near the ``shares`` of a trained size, the trained one first.

    Args:
        multiple: smaller sizes are rounded to a positive multiple of it.
    """
    smaller = [max(multiple, round(size * share / multiple) * multiple) for share in shares]
    return tuple(dict.fromkeys([size, *(value for value in sorted(smaller, reverse=True) if value < size)]))


def depths(layers: int, share: float = DEPTHS) -> tuple[int, ...]:
    """Return all depths from the trained one down to a share of it, rounded up."""
    return tuple(range(layers, max(1, math.ceil(layers * share)) - 1, -1))


def rounding(size: int) -> int:
    """Return the rounding of smaller sizes: a power of two that divides ``size``, smaller for small sizes."""
    multiple = 1
    while multiple < _MULTIPLE and size % (2 * multiple) == 0 and 16 * multiple <= size:
        multiple *= 2
    return multiple
