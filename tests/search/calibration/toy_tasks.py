"""A made-up task: standalone quality that sizes and a supernet tell in part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nas_core.space import Architecture, SearchSpace, get_space

__all__ = ["SPACE", "drawn", "inherited_loss", "standalone"]

SPACE: SearchSpace = get_space("hat_small")
Array = NDArray[np.float64]


def drawn(count: int, seed: int = 0) -> list[Architecture]:
    """Different architectures at random."""
    rows = SPACE.sample_rows(np.random.default_rng(seed), 3 * count)
    return list(dict.fromkeys(SPACE.architectures(rows)))[:count]


def standalone(networks: list[Architecture], noise: float = 0.1, seed: int = 1) -> Array:
    """A score of which larger is better: deeper and wider decoders have more, ever less of it."""
    size = [sum(one.numbers("decoder.ffn_dim")) * one.number("decoder.embed_dim") for one in networks]
    return 20 + 2 * np.log(np.array(size, float)) + noise * np.random.default_rng(seed).standard_normal(len(networks))


def inherited_loss(networks: list[Architecture], noise: float = 0.1, seed: int = 2) -> Array:
    """A loss that tells half of it, with an offset."""
    return 12 - standalone(networks, 0.0) / 4 + noise * np.random.default_rng(seed).standard_normal(len(networks))
