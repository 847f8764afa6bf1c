"""Options for sizes around those of a trained network."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTHS = (1.0, 0.875, 0.75, 0.625)
"""Options for widths, as fractions of the trained width."""
HEADS = (1.0, 0.75, 0.5)
"""Options for the number of heads, as fractions of the trained number."""
FFN = (1.0, 0.75, 0.5, 0.25)
"""Options for feed-forward widths, as fractions of the trained width."""
DEPTHS = 0.5
"""Smallest number of layers, as a fraction of the trained number."""
_MULTIPLE = 16


def size_options(size: int, shares: Sequence[float], multiple: int = 1) -> tuple[int, ...]:
    """Return a trained size and the fractions ``shares`` of it, in descending order.

    Args:
        multiple: fractions are rounded to a positive multiple of this number.
    """
    smaller = [max(multiple, round(size * share / multiple) * multiple) for share in shares]
    return tuple(dict.fromkeys([size, *(value for value in sorted(smaller, reverse=True) if value < size)]))


def depths(layers: int, share: float = DEPTHS) -> tuple[int, ...]:
    return tuple(range(layers, max(1, math.ceil(layers * share)) - 1, -1))


def rounding(size: int) -> int:
    """Return the multiple for :func:`size_options`: a power of two that divides ``size``, at most 16."""
    multiple = 1
    while multiple < _MULTIPLE and size % (2 * multiple) == 0 and 16 * multiple <= size:
        multiple *= 2
    return multiple
