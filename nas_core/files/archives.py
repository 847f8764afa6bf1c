"""Zip archives: .npz files and torch checkpoints."""

from __future__ import annotations

import contextlib
import functools
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nas_core.errors import NasExtError
from nas_core.files.reading import check_regular

DAMAGED_ARCHIVE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, LookupError, TypeError,
    AttributeError, ArithmeticError, MemoryError, RuntimeError, SyntaxError, tokenize.TokenError,
)  # fmt: skip
"""Exceptions that the readers of an archive raise if it is damaged"""

_NO_PICKLE: tuple[type[Exception], ...] = (NasExtError, StopIteration, *DAMAGED_ARCHIVE)
_PICKLE = 2**26  # maximum size of the pickle in a checkpoint in bytes, which describes the tensors without their values


def check_archive(path: str | Path) -> None:
    """Raise a ValueError if a record of a checkpoint in torch's zip format does not match its checksum.

    Checksums of an unchanged file are verified once per process.
    """
    if not zipfile.is_zipfile(check_regular(path)):
        return
    state = Path(path).stat()
    if (record := _damaged_record(str(path), state.st_ino, state.st_size, state.st_mtime_ns)) is not None:
        raise ValueError(f"zip entry {record} does not match its checksum; copy the file again")


@functools.lru_cache(maxsize=16)
def _damaged_record(path: str, *_: int) -> str | None:
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def archive_pickle(path: str | Path) -> bytes:
    """Return the bytes of the pickle in a checkpoint in torch's zip format, not unpickled; empty for other files."""
    try:
        with zipfile.ZipFile(check_regular(path)) as archive:
            record = next(record for record in archive.infolist() if record.filename.endswith("data.pkl"))
            return archive.read(record) if record.file_size <= _PICKLE else b""
    except _NO_PICKLE:
        return b""


@contextlib.contextmanager
def open_npz(path: str | Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an .npz file without pickled objects.

    Raises:
        One of `DAMAGED_ARCHIVE`: the file is damaged or is not an .npz file.
    """
    if not zipfile.is_zipfile(check_regular(path)):
        raise zipfile.BadZipFile("it is not a zip file")
    with np.load(path, allow_pickle=False) as file:
        yield file
