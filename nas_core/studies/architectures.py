"""Which architectures a study looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nas_core.errors import ArchitectureError, ConfigError
from nas_core.search.limits import costs_on_paper
from nas_core.space import Architecture, SearchSpace

_DRAWS = 50
"""Draws per architecture, after which a space counts as exhausted."""


@dataclass(frozen=True, kw_only=True)
class ArchitecturesConfig:
    """Architectures that a study compares.

    Raises:
        ConfigError: a number below 0.
    """

    random: int = 4
    """Random architectures, beside the smallest, the middle and the largest of the space."""
    arch: tuple[Path, ...] = ()
    """Architecture file, instead of all others; repeatable."""
    seed: int = 0
    """Seed of what is drawn."""

    def __post_init__(self) -> None:
        if self.random < 0 or self.seed < 0:
            raise ConfigError(f"random {self.random}, seed {self.seed}; expected 0 or more")


def chosen(space: SearchSpace, config: ArchitecturesConfig, at_least: int = 1) -> dict[str, Architecture]:
    """The architectures by name, each once: those of the files, else the smallest, the middle and the largest of the
    space, and random ones.

    Raises:
        ConfigError: fewer than ``at_least``, or two files of one name. ArchitectureError: one lies outside the space.
        DataError: a file is missing or holds none.
    """
    named: dict[str, Architecture] = {}
    if config.arch:
        for path in config.arch:
            if path.stem in named:
                raise ConfigError(f"two files are named {path.stem!r}; tables name architectures by files, rename one")
            try:
                named[path.stem] = space.validate(Architecture.load(path))
            except ArchitectureError as error:
                raise ArchitectureError(f"{path}: {error}") from None
    else:
        named = {"smallest": space.smallest(), "middle": middle(space), "largest": space.largest()}
        others = drawn(space, config.random, config.seed, without=list(named.values()))
        named |= {f"random {index}": architecture for index, architecture in enumerate(others, start=1)}
    found: dict[Architecture, str] = {}
    for name, architecture in named.items():
        found.setdefault(architecture, name)
    if len(found) < at_least:
        raise ConfigError(f"{len(found)} different architectures; expected at least {at_least}: give more")
    return {name: architecture for architecture, name in found.items()}


def drawn(space: SearchSpace, count: int, seed: int, without: Sequence[Architecture] = ()) -> list[Architecture]:
    """So many random architectures, each once, drawn gene by gene; fewer where a space holds no more.

    Args:
        without: architectures that are not drawn.
    """
    stream, found = np.random.default_rng(seed), dict.fromkeys(without)
    for _ in range(_DRAWS * count):
        if len(found) == count + len(set(without)):
            break
        found.setdefault(space.sample(stream))
    return list(found)[len(set(without)) :]


def middle(space: SearchSpace) -> Architecture:
    """The architecture with the middle option of every choice; of two middle ones, by turns the smaller and the larger,
    so that it is neither the smallest nor the largest network where all choices have two options."""
    genes: dict[str, object] = dict(space.fixed)
    for turn, choice in enumerate(sorted(space.choices, key=lambda choice: choice.per is not None)):
        options = [
            sorted(row, key=choice.code)[(len(row) - 1 + (turn + layer) % 2) // 2]
            for layer, row in enumerate(choice.options)
        ]
        genes[choice.name] = options[0] if choice.per is None else tuple(options[: int(str(genes[choice.per]))])
    return space.validate(Architecture(genes))


def params_m(space: SearchSpace, architectures: Mapping[str, Architecture]) -> dict[str, float]:
    """Millions of parameters by name; empty where the space is of no known kind of network."""
    cost = costs_on_paper(space).get("params_m")
    return {} if cost is None else {name: cost(architecture) for name, architecture in architectures.items()}
