"""Sizes of the vocabularies of a folder of training data, as the host that prepared it counts them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from nas_core.errors import DataError, MissingHostError
from nas_core.supernet import host

__all__ = ["DataHost", "vocabularies"]


@runtime_checkable
class DataHost(Protocol):
    """A :class:`nas_core.supernet.host.Host` that also reads folders of parallel data."""

    def vocabularies(self, data: Path) -> tuple[int, int] | None:
        """Rows of the source and of the target embedding of a network for this folder; None if it is of another host.

        Raises:
            DataError: the folder is of this host, but damaged.
        """
        ...


def vocabularies(data: str | Path) -> tuple[int, int]:
    """Source and target vocabulary of a data folder, from the first host that knows it.

    Raises:
        DataError: there is no such folder, or no installed host knows it. MissingHostError: no host is usable.
    """
    folder = Path(data)
    if not folder.is_dir():
        raise DataError(f"no folder {folder}; give the data that the supernet is trained on")
    failures, usable = [], 0
    for _, each in host.each_host():
        if isinstance(each, MissingHostError):
            failures.append(each)
        elif isinstance(each, DataHost):
            usable += 1
            if (found := each.vocabularies(folder)) is not None:
                return found
    if failures and not usable:
        raise failures[0]
    raise DataError(f"{folder} holds no vocabularies; expected a folder of fairseq-preprocess, with dict.*.txt in it")
