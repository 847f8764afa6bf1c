"""Zip archives from anybody, such as .npz files and checkpoints: what they declare is read before what they hold."""

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
"""What reading an altered zip archive raises, such as an .npz file or a checkpoint."""

MOST_ARRAYS = 2**30
"""Bytes of all arrays of an .npz file together, unpacked."""
_PICKLE = 2**26
"""Bytes of a checkpoint's pickle: it names the tensors, whose numbers are in other records."""
_SLACK = 2**26


def check_archive(path: str | Path, whole: bool = True) -> None:
    """Reject a checkpoint in a zip archive that declares far more than the file can hold (torch packs nothing), or
    whose records do not fit their checksums, which torch does not look at.

    Args:
        whole: read all records for their checksums; False where no tensor is used. A file that did not change is read
            once per process.

    Raises:
        ValueError: it is one of these, or damaged. DataError: no such file, or a pipe.
    """
    if not zipfile.is_zipfile(check_regular(path)):
        return
    with zipfile.ZipFile(path) as archive:
        declared = sum(record.file_size for record in archive.infolist())
        pickled = max((record.file_size for record in archive.infolist() if _is_pickle(record)), default=0)
    if declared > 2 * Path(path).stat().st_size + _SLACK or pickled > _PICKLE:
        raise ValueError(f"its records declare {declared} bytes, more than a checkpoint of this size can hold")
    state = Path(path).stat()
    if whole and (record := _damaged_record(str(path), state.st_ino, state.st_size, state.st_mtime_ns)) is not None:
        raise ValueError(f"its record {record} does not fit its checksum; copy the file again")


@functools.lru_cache(maxsize=16)
def _damaged_record(path: str, *_: int) -> str | None:
    """Return the name of the first record that does not fit its checksum."""
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()


def archive_pickle(path: str | Path) -> bytes:
    """The pickle in torch's zip format, unread; empty where there is none, whatever the file is."""
    try:
        with zipfile.ZipFile(check_regular(path)) as archive:
            record = next(each for each in archive.infolist() if _is_pickle(each))
            return archive.read(record) if record.file_size <= _PICKLE else b""
    except (NasExtError, StopIteration):
        return b""
    except DAMAGED_ARCHIVE:
        return b""


def _is_pickle(record: zipfile.ZipInfo) -> bool:
    return record.filename.endswith("data.pkl")


@contextlib.contextmanager
def open_npz(path: str | Path, most: int | None = None) -> Iterator[np.lib.npyio.NpzFile]:
    """An .npz file of plain arrays, which are read when they are asked for.

    Args:
        most: bytes that all arrays may have, unpacked; default: 1 GB, or twice the file where that is more.

    Raises:
        DataError: the file is missing, or a pipe. One of `DAMAGED_ARCHIVE`: it is none, or declares more.
    """
    with zipfile.ZipFile(check_regular(path)) as archive:
        declared = sum(record.file_size for record in archive.infolist())
    bound = max(MOST_ARRAYS, 2 * Path(path).stat().st_size) if most is None else most
    if declared > bound:
        raise ValueError(f"its arrays declare {declared} bytes; expected {bound} at most")
    with np.load(path, allow_pickle=False) as file:
        yield file
