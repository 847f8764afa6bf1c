"""Which architectures a training step and a validation look at.

Draws depend on the seed and the update number alone, so that all workers, all micro-batches of an update and a resumed
run agree without exchanging anything.
"""

from __future__ import annotations

import numpy as np

from nas_core.space import Architecture, SearchSpace, hat_draw

DRAWS = ("gene", "architecture", "hat")
"""Ways to draw: each gene uniformly, uniformly over architectures, or the random stream of HAT's released code."""


def draw(space: SearchSpace, update: int, seed: int = 1, how: str = "gene") -> Architecture:
    """The random architecture of an update (``hat`` ignores the seed, as HAT does)."""
    if how == "hat":
        return hat_draw(space, update)
    return space.sample(np.random.default_rng([seed, update]), how)


def sandwich(space: SearchSpace, random: Architecture) -> dict[str, Architecture]:
    """The three architectures of a sandwich step (Yu et al. 2020; Mixture-of-Supernets, equation 2), by name."""
    return {"random": random, "largest": space.largest(), "smallest": space.smallest()}


def validation_set(space: SearchSpace, random: int, seed: int = 0) -> dict[str, Architecture]:
    """The architectures whose validation loss is followed: smallest, largest and ``random`` fixed draws, by name; just
    the one if the space holds one."""
    if space.cardinality() == 1:
        return {"largest": space.largest()}
    rng = np.random.default_rng(seed)
    drawn = {f"random{index + 1}": space.sample(rng) for index in range(random)}
    return {"smallest": space.smallest(), "largest": space.largest(), **drawn}
