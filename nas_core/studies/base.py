"""What a study is: a question to trained supernets, answered by a table, a picture and JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from nas_core.errors import ConfigError, DataError
from nas_core.files import real_path
from nas_core.space import SearchSpace
from nas_core.studies.result import StudyResult
from nas_core.supernet.host import Supernet, open_supernet


@dataclass(frozen=True)
class Subject:
    """A supernet that is studied."""

    name: str
    """What tables and pictures call it."""
    path: Path
    """Its checkpoint."""
    supernet: Supernet


class Study(ABC):
    """One question. It has no state of its own; what it is asked with are the fields of its ``config``."""

    name: ClassVar[str]
    """Its name in the registry and on the command line."""
    purpose: ClassVar[str]
    """What it tells, in one line."""
    about: ClassVar[str]
    """What is measured, how it is defined and after which table of which paper, in a few sentences."""
    config: ClassVar[type[Any]]
    """Its settings: a frozen dataclass with a docstring under each field."""

    @abstractmethod
    def run(self, subjects: Sequence[Subject], config: Any, folder: Path) -> StudyResult:
        """Study supernets.

        Args:
            config: an object of :attr:`config`.
            folder: where it may keep what it goes on with when it is started again.

        Raises:
            ConfigError, DataError: these supernets cannot be studied so; the message says why.
        """


def open_subjects(checkpoints: Sequence[Path], **options: Any) -> list[Subject]:
    """Open supernets and name them by their files, or by their folders where files are named alike.

    Args:
        options: as :func:`nas_core.supernet.open_supernet` takes them.

    Raises:
        ConfigError: a checkpoint is given twice. Others as of that function.
    """
    if len({real_path(path) for path in checkpoints}) < len(checkpoints):
        raise ConfigError("a checkpoint is given twice; give each supernet once")
    names = [path.stem for path in checkpoints]
    if len(set(names)) < len(names):
        names = [real_path(path).parent.name for path in checkpoints]
    if len(set(names)) < len(names):
        names = [str(path) for path in checkpoints]
    return [Subject(name, path, open_supernet(path, **options)) for name, path in zip(names, checkpoints, strict=True)]


def learned_weights(network: Any) -> list[Any]:
    """The parameters of a network that training changes."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def one_space(subjects: Sequence[Subject]) -> SearchSpace:
    """The space that all supernets were trained on.

    Raises:
        ConfigError: they were trained on different ones.
    """
    first = subjects[0]
    for other in subjects[1:]:
        if other.supernet.space != first.supernet.space:
            raise ConfigError(
                f"{first.path} was trained on space {first.supernet.space.name!r}, {other.path} on"
                f" {other.supernet.space.name!r}, which differ; study supernets of one space together"
            )
    return first.supernet.space


def some_batches(supernet: Supernet, count: int) -> Iterator[Any]:
    """So many batches of a supernet, or all, in their order.

    Of a list they are spread evenly, since hosts sort examples (fairseq: by length); of what is read one by one, which
    is in random order, they are the first.
    """
    batches = supernet.batches()
    if not isinstance(batches, Sequence):
        yield from islice(batches, count)
        return
    count = min(count, len(batches))
    for index in range(count):
        yield batches[(2 * index + 1) * len(batches) // (2 * count)]


def same_examples(subjects: Sequence[Subject]) -> None:
    """Check that all supernets are evaluated on the same examples, as far as their hosts say.

    Raises:
        DataError: two of them are not.
    """
    if len(subjects) < 2:
        return
    said = [(subject, key) for subject in subjects if (key := subject.supernet.examples_key())]
    for subject, key in said[1:]:
        first, expected = said[0]
        if key != expected:
            raise DataError(
                f"{first.path} and {subject.path} are evaluated on different examples, so that their figures do not"
                " compare; give a folder of validation data for both with --data"
            )
