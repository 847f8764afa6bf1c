"""Sampling of architectures for training steps and validation.

Samples depend only on seed and update number, so that workers, micro-batches and resumed trainings agree.
"""

from __future__ import annotations

import numpy as np

from nas_core.errors import check_choice
from nas_core.space import Architecture, SearchSpace
from nas_core.space.hat import hat_draw, hat_extremes

DRAWS = ("gene", "hat")
"""Sampling of architectures: each gene uniformly, or as in HAT's code."""

EXTREMES = ("space", "hat")
"""Smallest and largest architecture: those of the space, or as in the code of HAT and MoS."""


def draw(space: SearchSpace, update: int, seed: int = 1, sampling: str = "gene") -> Architecture:
    """Return the random architecture of an update. ``sampling`` is one of :data:`DRAWS`; ``hat`` ignores ``seed``."""
    check_choice("way of sampling", sampling, DRAWS)
    if sampling == "hat":
        return hat_draw(space, update)
    return space.sample(np.random.default_rng([seed, update]))


def sandwich(space: SearchSpace, random: Architecture, extremes: str = "space") -> dict[str, Architecture]:
    """Return the largest, the smallest and the given random architecture by name (Yu and Huang 2019; MoS, equation 2).

    ``extremes`` is one of :data:`EXTREMES`.
    """
    smallest, largest = _extremes(space, extremes)
    return {"random": random, "largest": largest, "smallest": smallest}


def validation_set(space: SearchSpace, random: int, seed: int = 0, extremes: str = "space") -> dict[str, Architecture]:
    """Return architectures for validation by name: the smallest, the largest and ``random`` fixed samples."""
    if space.cardinality() == 1:
        return {"largest": space.largest()}
    rng = np.random.default_rng(seed)
    samples = {f"random{index + 1}": space.sample(rng) for index in range(random)}
    smallest, largest = _extremes(space, extremes)
    return {"smallest": smallest, "largest": largest, **samples}


def _extremes(space: SearchSpace, extremes: str) -> tuple[Architecture, Architecture]:
    check_choice("definition of smallest and largest architecture", extremes, EXTREMES)
    return hat_extremes(space) if extremes == "hat" else (space.smallest(), space.largest())
