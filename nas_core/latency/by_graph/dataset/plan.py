"""Which networks a data set holds, and in which order."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nas_core.errors import ConfigError
from nas_core.latency.by_graph.families.family import Family, Settings

_MOST_DRAWS = 50
"""Draws for one network, after which a family counts as exhausted."""


class PlannedNetwork(NamedTuple):
    """A network that is not built yet."""

    name: str
    """Family and number: vgg_0007."""
    family: Family
    settings: Settings
    """Settings of the network, as JSON gives them back."""


def planned_networks(families: Sequence[Family], count: int, seed: int, most_batch: int = 1) -> list[PlannedNetwork]:
    """The first ``count`` networks of the seed's list: one of each family in turn, so that drift of the machine is not
    taken for a property of a family, and any beginning of the list is a smaller data set. Each has a ``batch`` from 1
    to the most, drawn by chance, if that is more than 1 and the family takes any.

    Raises:
        ConfigError: a family gave no other network in 50 draws, or no network is asked for.
    """
    if count < 1:
        raise ConfigError(f"{count} networks were asked for, expected at least 1")
    drawn = [_networks(family, seed, most_batch) for family in families]
    return [next(drawn[index % len(drawn)]) for index in range(count)]


def _networks(family: Family, seed: int, most_batch: int) -> Iterator[PlannedNetwork]:
    """Different networks of one family, which depend on the seed and the family's name alone."""
    rng = np.random.default_rng([seed, zlib.crc32(family.name.encode())])
    known: set[str] = set()
    while True:
        for _ in range(_MOST_DRAWS):
            settings = dict(family.sample(rng))
            if most_batch > 1 and family.batched:
                settings["batch"] = int(rng.integers(1, most_batch + 1))
            text = json.dumps(settings, sort_keys=True)
            if text not in known:
                break
        else:
            raise ConfigError(
                f"family {family.name!r} gave no network beside {len(known)} in {_MOST_DRAWS} draws: ask for fewer"
            )
        yield PlannedNetwork(f"{family.name}_{len(known):04d}", family, json.loads(text))
        known.add(text)
