"""Base class and data of studies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nas_core.errors import ArchitectureError, ConfigError, DataError
from nas_core.files.reading import real_path
from nas_core.report.figures import Figure
from nas_core.report.tables import Table
from nas_core.search.limits import costs_on_paper
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.host import Supernet, open_supernet


@dataclass(frozen=True)
class StudyResult:
    """Tables, plots and notes of a study."""

    table: Table
    summary: Table
    """One row per supernet."""
    plots: Mapping[str, Figure]
    """Caption -> plotly figure."""
    notes: Sequence[str] = ()
    """Definitions of the columns, and warnings."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further content of the study's JSON file."""


@dataclass(frozen=True)
class Subject:
    """Supernet that is studied."""

    name: str
    path: Path
    supernet: Supernet


class Study(ABC):
    """Base class of studies."""

    name: ClassVar[str]
    purpose: ClassVar[str]
    """One-line description for users."""
    about: ClassVar[str]
    """One-line description for users: the measured quantity and the paper's table."""
    config: ClassVar[type[Any]]
    """Frozen dataclass of the settings, with a docstring under each field."""

    @abstractmethod
    def run(self, subjects: Sequence[Subject], config: Any, folder: Path) -> StudyResult:
        """Study supernets; an interrupted study in ``folder`` is resumed."""


def open_subjects(checkpoints: Sequence[Path], **options: Any) -> list[Subject]:
    """Open supernets, named by their files, or by folders if files have equal names."""
    if len({real_path(path) for path in checkpoints}) < len(checkpoints):
        raise ConfigError(f"two of the checkpoints {', '.join(map(str, checkpoints))} are the same; give each once")
    names = [path.stem for path in checkpoints]
    if len(set(names)) < len(names):
        names = [real_path(path).parent.name for path in checkpoints]
    if len(set(names)) < len(names):
        names = [str(path) for path in checkpoints]
    return [Subject(name, path, open_supernet(path, **options)) for name, path in zip(names, checkpoints, strict=True)]


def shared_space(subjects: Sequence[Subject]) -> SearchSpace:
    first = subjects[0]
    for other in subjects[1:]:
        if other.supernet.space != first.supernet.space:
            raise ConfigError(
                f"{first.path} has search space {first.supernet.space.name!r}, but {other.path} has"
                f" {other.supernet.space.name!r}; give supernets of the same space"
            )
    return first.supernet.space


def check_same_examples(subjects: Sequence[Subject]) -> None:
    """Check that all supernets are evaluated on the same examples, if known.

    Raises:
        DataError: the examples differ.
    """
    keys = [(subject, key) for subject in subjects if (key := subject.supernet.examples_key())]
    for subject, key in keys[1:]:
        first, expected = keys[0]
        if key != expected:
            raise DataError(
                f"{first.path} and {subject.path} are evaluated on different examples and cannot be compared; give one"
                " data folder for both with --data"
            )


_DRAWS = 50


@dataclass(frozen=True, kw_only=True)
class ArchitecturesConfig:
    """Choice of a study's architectures."""

    random: int = 4
    """Number of random architectures, in addition to the smallest, the middle and the largest."""
    arch: tuple[Path, ...] = ()
    """Architecture file; replaces all other architectures; repeatable."""
    seed: int = 0
    """Seed of the random architectures."""

    def __post_init__(self) -> None:
        if self.random < 0 or self.seed < 0:
            raise ConfigError(f"random is {self.random} and seed is {self.seed}; expected 0 or more")


def select_architectures(space: SearchSpace, config: ArchitecturesConfig, at_least: int = 1) -> dict[str, Architecture]:
    """Return name -> architecture: those of files, or the smallest, middle, largest and random ones.

    Raises:
        ConfigError: there are fewer than ``at_least`` different architectures.
    """
    named: dict[str, Architecture] = {}
    if config.arch:
        for path in config.arch:
            try:
                named[path.stem] = space.validate(Architecture.load(path))
            except ArchitectureError as error:
                raise ArchitectureError(f"{path}: {error}") from None
        if len(named) < len(config.arch):
            raise ConfigError(
                f"two of the architecture files {', '.join(map(str, config.arch))} have the same name, which tables"
                " would show twice; rename one"
            )
    else:
        named = {"smallest": space.smallest(), "middle": middle(space), "largest": space.largest()}
        others = random_architectures(space, config.random, config.seed, excluded=list(named.values()))
        named |= {f"random {index}": architecture for index, architecture in enumerate(others, start=1)}
    distinct: dict[str, Architecture] = {}
    for name, architecture in named.items():
        if architecture not in distinct.values():
            distinct[name] = architecture
    if len(distinct) < at_least:
        raise ConfigError(
            f"got {len(distinct)} different architectures; expected at least {at_least}: give more files as arch, or a"
            " larger number as random"
        )
    return distinct


def random_architectures(
    space: SearchSpace, count: int, seed: int, excluded: Sequence[Architecture] = ()
) -> list[Architecture]:
    """Return ``count`` different random architectures; fewer if the search space has no more.

    Args:
        excluded: excluded architectures.
    """
    stream, architectures = np.random.default_rng(seed), dict.fromkeys(excluded)
    for _ in range(_DRAWS * count):
        if len(architectures) == count + len(set(excluded)):
            break
        architectures.setdefault(space.sample(stream))
    return list(architectures)[len(set(excluded)) :]


def middle(space: SearchSpace) -> Architecture:
    """Return the architecture with the middle option of every choice."""
    genes: dict[str, object] = dict(space.fixed)
    for index, choice in enumerate(sorted(space.choices, key=lambda choice: choice.per is not None)):
        options = [
            sorted(row, key=choice.code)[(len(row) - 1 + (index + layer) % 2) // 2]
            for layer, row in enumerate(choice.options)
        ]
        genes[choice.name] = options[0] if choice.per is None else tuple(options[: int(str(genes[choice.per]))])
    return space.validate(Architecture(genes))


def to_dicts(architectures: Mapping[str, Architecture]) -> dict[str, dict[str, Any]]:
    return {name: architecture.to_dict() for name, architecture in architectures.items()}


def params_m(space: SearchSpace, architectures: Mapping[str, Architecture]) -> dict[str, float]:
    """Return name -> millions of parameters; empty if they cannot be computed for the search space."""
    cost = costs_on_paper(space).get("params_m")
    return {} if cost is None else {name: cost(architecture) for name, architecture in architectures.items()}
