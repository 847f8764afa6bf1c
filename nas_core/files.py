"""Files that are either whole or not there.

Everything this project writes goes through here: a new version is written beside the old one, flushed to the disk and
renamed over it, so that a crash, a full disk or a second run never costs a good file. Journals are JSON Lines that grow
by whole records and survive a process killed in the middle of one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import lzma
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError

__all__ = [
    "DAMAGED_ARCHIVE",
    "append_jsonl",
    "atomic_output",
    "make_folder",
    "os_errors",
    "read_json",
    "read_jsonl",
    "write_atomic",
    "write_json",
]

DAMAGED_ARCHIVE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError, LookupError, TypeError,
    AttributeError, ArithmeticError, MemoryError, RuntimeError,
)  # fmt: skip
"""What reading an altered zip archive raises, such as an .npz file or a checkpoint."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def os_errors(verb: str, path: str | Path) -> Iterator[None]:
    """What the system refuses inside the block becomes a `NasExtError` of one line: cannot `verb` `path`."""
    try:
        yield
    except OSError as error:
        raise NasExtError(
            f"cannot {verb} {path}: {error.strerror or error}; check the path, its rights and the free space"
        ) from error


def make_folder(path: str | Path) -> None:
    """The folder and those above it, if they are not there yet.

    Raises:
        NasExtError: it cannot be made (read-only, a file in the way).
    """
    with os_errors("make the folder", path):
        Path(path).mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it becomes `path` when the block ends without an exception.

    For writers that want a file name (``torch.save``, ``safetensors``). Missing folders are made.

    Raises:
        NasExtError: the file cannot be written (disk full, read-only, a folder in the way); the old file is untouched.
    """
    target = Path(os.path.realpath(path))  # a link keeps pointing at the file it names
    with os_errors("write", path):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
        beside = Path(name)
        try:
            yield beside
            beside.chmod(_mode_for(target))
            _sync(beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not every file system lets a folder be synchronised
            _sync(target.parent)


def write_atomic(path: str | Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) as the whole content of `path`, or leave the old content.

    Raises:
        NasExtError: see `atomic_output`.
    """
    content = data.encode("utf-8") if isinstance(data, str) else data
    with atomic_output(path) as beside:
        beside.write_bytes(content)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON; NumPy numbers and arrays become plain ones.

    Raises:
        NasExtError: see `atomic_output`.
    """
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def read_json(path: str | Path) -> Any:
    """The value in a JSON file.

    Raises:
        DataError: the file is missing or is not JSON.
        NasExtError: it cannot be read.
    """
    content = _read(path)
    try:
        return json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}): give a JSON file, or make it anew if it is damaged") from error


def append_jsonl(path: str | Path, record: Mapping[str, Any]) -> None:
    """Add one record to a journal and wait until it is on the disk; the journal is made if it does not exist.

    A half-written last line, left by a process killed while writing, is removed first. One writer at a time.

    Raises:
        DataError: the file ends in something that is no part of a journal; it is left as it is.
        NasExtError: it cannot be written; a partly written record is taken back.
    """
    line = json.dumps(record, ensure_ascii=False, default=_plain).encode("utf-8") + b"\n"
    journal = Path(path)
    with os_errors("write", path):
        journal.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(journal, os.O_RDWR | os.O_CREAT, 0o666)
        with open(descriptor, "r+b", buffering=0) as file:
            end = _mend(file.fileno(), path)
            try:
                rest = memoryview(line)
                file.seek(end)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise


def read_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """The records of a journal in order; a half-written last line is dropped with a warning.

    Raises:
        DataError: the file is missing, or any other line is not a JSON object.
        NasExtError: it cannot be read.
    """
    lines = _read(path).split(b"\n")
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except ValueError as error:
            if number == len(lines) and line.lstrip().startswith(b"{"):
                _log.warning("%s: dropped line %d, which was only half written", path, number)
                break
            raise DataError(
                f"{path}, line {number} is not a JSON object ({error}): the file is damaged or no journal; restore it, "
                "or move it away to start anew"
            ) from error
    return records


def _record(line: bytes) -> dict[str, Any]:
    value = json.loads(line.decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"got {type(value).__name__}")
    return value


def _mend(descriptor: int, path: str | Path) -> int:
    """Make the journal end with a line break and return its length in bytes."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        step = min(65536, start)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
    tail = tail.rpartition(b"\n")[2]
    try:
        _record(tail)
    except ValueError as error:
        if not tail.lstrip().startswith(b"{"):
            raise DataError(
                f"{path} does not end in a JSON object: it is no journal, or a damaged one; it was left as it is, give "
                "another file name"
            ) from error
        _log.warning("%s: removed its last line, which was only half written", path)
        os.ftruncate(descriptor, size - len(tail))
        return size - len(tail)
    os.pwrite(descriptor, b"\n", size)
    return size + 1


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"file not found: {path}; check the name and the folder it is taken from") from error
    except OSError as error:
        raise NasExtError(f"cannot read {path}: {error.strerror or error}; check the path and its rights") from error


def _mode_for(target: Path) -> int:
    """The rights of the file to be replaced, or those a new file gets."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _plain(value: object) -> Any:
    """What JSON holds for an object it does not know: NumPy and torch values as numbers and lists, paths as text."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
