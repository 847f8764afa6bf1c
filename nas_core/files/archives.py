"""Zip archives (.npz files, torch checkpoints), whose declared sizes are checked before unpacking."""

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
MAX_ARRAY_BYTES = 2**30  # maximum unpacked size of an .npz file in bytes
_PICKLE = 2**26  # maximum size of the pickle in a checkpoint in bytes, which describes the tensors without their values
_SLACK = 2**26


def check_archive(path: str | Path, complete: bool = True) -> None:
    """Raise a ValueError if a checkpoint in torch's zip format is damaged or declares more bytes than it can hold.

    Args:
        complete: also verify the checksums of all records, once per process for an unchanged file.
    """
    if not zipfile.is_zipfile(check_regular(path)):
        return
    with zipfile.ZipFile(path) as archive:
        declared = sum(record.file_size for record in archive.infolist())
        pickled = max((record.file_size for record in archive.infolist() if _is_pickle(record)), default=0)
    state = Path(path).stat()
    # torch does not compress
    if declared > 2 * state.st_size + _SLACK or pickled > _PICKLE:
        raise ValueError(f"its zip entries declare {declared} bytes, more than a checkpoint of this size can hold")
    if complete and (record := _damaged_record(str(path), state.st_ino, state.st_size, state.st_mtime_ns)) is not None:
        raise ValueError(f"zip entry {record} does not match its checksum; copy the file again")


@functools.lru_cache(maxsize=16)
def _damaged_record(path: str, *_: int) -> str | None:
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def archive_pickle(path: str | Path) -> bytes:
    """Return the bytes of the pickle in a checkpoint in torch's zip format, not unpickled; empty for other files."""
    try:
        with zipfile.ZipFile(check_regular(path)) as archive:
            record = next(record for record in archive.infolist() if _is_pickle(record))
            return archive.read(record) if record.file_size <= _PICKLE else b""
    except _NO_PICKLE:
        return b""


def _is_pickle(record: zipfile.ZipInfo) -> bool:
    return record.filename.endswith("data.pkl")


@contextlib.contextmanager
def open_npz(path: str | Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an .npz file without pickled objects, of at most :data:`MAX_ARRAY_BYTES`, or twice the size of the file.

    Raises:
        One of `DAMAGED_ARCHIVE`: the file is damaged or too large.
    """
    with zipfile.ZipFile(check_regular(path)) as archive:
        declared = sum(record.file_size for record in archive.infolist())
    bound = max(MAX_ARRAY_BYTES, 2 * Path(path).stat().st_size)
    if declared > bound:
        raise ValueError(f"its arrays declare {declared} bytes; expected {bound} at most")
    with np.load(path, allow_pickle=False) as file:
        yield file
