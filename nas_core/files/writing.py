"""Files that are either whole or not there: written beside the old version, flushed, and renamed over it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import socket
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError

_OF_DISK = re.compile(r"PytorchStreamWriter|unexpected pos|os error \d+|file write failed")
"""In what torch (RuntimeError) and safetensors (SafetensorError) say where a file cannot be written."""
_YOUNG_S = 60.0
"""A new file may have no lock yet, unless its writer has ended."""


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


def check_replaceable(path: str | Path) -> None:
    """Reject a path that is a pipe, a socket or a device: only a regular file is replaced or appended to.

    Raises:
        DataError: it is one of these.
    """
    with os_errors("write", path):
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise DataError(f"cannot write {path}: it is a pipe, a socket or a device; give the name of a file")


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it becomes `path` when the block ends without an exception.

    For writers that want a file name (``torch.save``, ``safetensors``). Missing folders are made.

    Raises:
        NasExtError: the file cannot be written (disk full, read-only, a folder in the way, a device or a pipe); the old
            file is untouched.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))  # a link keeps pointing at the file it names
    with os_errors("write", path):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(target)
        writer = f"{os.getpid()}-{_host()}"
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.{writer}.", suffix=".part")
        beside = Path(name)
        try:
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with _disk_errors():
                yield beside
            beside.chmod(_mode_for(target))
            _sync(beside)
            beside.replace(target)
        finally:
            os.close(handle)
            beside.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not every file system lets a folder be synchronised
            _sync(target.parent)


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    """What torch and safetensors raise when the disk is full is an OSError, as everybody else's."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if _OF_DISK.search(str(error)):
            raise OSError(errno.EIO, " ".join(str(error).split())[:120]) from error
        raise


def _remove_left(target: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left; who writes now holds a lock."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError):
            young = time.time() - left.stat().st_mtime < _YOUNG_S
            if left.is_dir() or (young and not _has_ended(left.name.split(".")[-3])):
                continue
            with left.open("rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


def _host() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _has_ended(writer: str) -> bool:
    """Return whether the writer that a file name holds was a process of this machine and has ended."""
    process, _, host = writer.partition("-")
    if host != _host() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return True
    return False


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
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False, default=plain_json) + "\n")


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


def plain_json(value: object) -> Any:
    """What JSON holds for an object it does not know: NumPy and torch values as numbers and lists, paths as text."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
