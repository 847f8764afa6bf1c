"""Random draws, mutation and crossover on rows of option indices, vectorised over architectures."""

from __future__ import annotations

import numpy as np

from nas_core.errors import unknown_choice
from nas_core.space.slots import ABSENT, Rows, Slots

SAMPLINGS = ("gene", "architecture")


def sample(slots: Slots, rng: np.random.Generator, n: int, how: str = "gene") -> Rows:
    """``n`` canonical rows: each gene uniform (``gene``), or uniform over all architectures (``architecture``)."""
    if how not in SAMPLINGS:
        raise unknown_choice("way of sampling", how, SAMPLINGS)
    rows = _every_gene(slots, rng, n)
    if how == "architecture":
        for depth_gene in sorted(slots.depth_genes):
            weights = slots.depth_weights(depth_gene)
            rows[:, slots.depth_column(depth_gene)] = rng.choice(len(weights), size=n, p=weights)
    return slots.canonical(rows)


def mutate(slots: Slots, parents: Rows, prob: float, rng: np.random.Generator) -> Rows:
    """Each gene replaced with probability ``prob`` by a uniform draw; layers that appear are drawn uniformly."""
    fresh = _every_gene(slots, rng, len(parents))
    replaced = (rng.random(parents.shape) < prob) | (parents == ABSENT)
    return slots.canonical(np.where(replaced, fresh, parents))


def crossover(slots: Slots, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    """Each gene from either parent with probability 1/2; a layer that only one parent has comes from that one."""
    child = np.where(rng.random(first.shape) < 0.5, first, second)
    return slots.canonical(np.where(child == ABSENT, np.maximum(first, second), child))


def _every_gene(slots: Slots, rng: np.random.Generator, n: int) -> Rows:
    return rng.integers(0, slots.sizes, size=(n, slots.count)).astype(np.int16)
