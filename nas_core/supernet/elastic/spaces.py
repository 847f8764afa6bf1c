"""Options around the sizes of a trained network."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nas_core.errors import ConfigError

WIDTHS = (1.0, 0.875, 0.75, 0.625)
"""Shares of a trained width that smaller networks may have."""
HEADS = (1.0, 0.75, 0.5)
"""Shares of the heads of each attention."""
FFN = (1.0, 0.75, 0.5, 0.25)
"""Shares of the hidden units of each feed-forward layer."""
DEPTHS = 0.5
"""Share of the layers of a side that the shallowest networks have."""
_MULTIPLE = 16
"""Smaller widths are multiples of this where the trained one is wide enough."""


def around(size: int, shares: Sequence[float], multiple: int = 1) -> tuple[int, ...]:
    """Different sizes near those shares of a trained one, the trained one first.

    Args:
        multiple: what smaller sizes are rounded to a multiple of, at least one of it.

    Raises:
        ConfigError: no size, or a share above 1.
    """
    if size < 1 or multiple < 1 or any(not 0 < share <= 1 for share in shares):
        raise ConfigError(f"sizes around {size} by shares {list(shares)}; expected a size above 0, shares up to 1")
    smaller = [max(multiple, round(size * share / multiple) * multiple) for share in shares]
    return tuple(dict.fromkeys([size, *(each for each in sorted(smaller, reverse=True) if each < size)]))


def depths(layers: int, share: float = DEPTHS) -> tuple[int, ...]:
    """Every number of layers from all of them down to that share, rounded up."""
    return tuple(range(layers, max(1, math.ceil(layers * share)) - 1, -1))


def rounding(size: int) -> int:
    """What sizes below a trained one are multiples of: small numbers for small networks, never more than its own
    factors of two."""
    multiple = 1
    while multiple < _MULTIPLE and size % (2 * multiple) == 0 and 16 * multiple <= size:
        multiple *= 2
    return multiple
