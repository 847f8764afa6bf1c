"""Atomic writers: they write and flush a temporary file, then rename it to the final name.

They create missing folders. If they raise a NasExtError, an existing file stays unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nas_core.errors import DataError, NasExtError

# parts of the messages of torch (RuntimeError) and safetensors (SafetensorError) for a full disk
_OF_DISK = re.compile(r"PytorchStreamWriter|unexpected pos|os error \d+|file write failed")


@contextlib.contextmanager
def os_errors(verb: str, path: str | Path) -> Iterator[None]:
    """Turn an OSError inside the block into a `NasExtError` with the message "cannot ``verb`` ``path``"."""
    try:
        yield
    except OSError as error:
        raise NasExtError(
            f"cannot {verb} {path}: {error.strerror or error}; check the path, its permissions and the free space"
        ) from error


def make_folder(path: str | Path) -> None:
    with os_errors("make the folder", path):
        Path(path).mkdir(parents=True, exist_ok=True)


def check_replaceable(path: str | Path) -> None:
    """Raise a DataError for a pipe, a socket or a device."""
    with os_errors("write", path):
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise DataError(f"cannot write {path}: it is a pipe, a socket or a device; give the name of a file")


@contextlib.contextmanager
def atomic_output(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path, and rename it to ``path`` if the block ends without an exception."""
    check_replaceable(path)
    target = Path(os.path.realpath(path))  # a link keeps pointing at its file
    with os_errors("write", path):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        temporary = Path(name)
        try:
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with _disk_errors():
                yield temporary
            temporary.chmod(_mode_for(target))
            _sync(temporary)
            temporary.replace(target)
        finally:
            os.close(handle)
            temporary.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            _sync(target.parent)


@contextlib.contextmanager
def _disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if _OF_DISK.search(str(error)):
            raise OSError(errno.EIO, " ".join(str(error).split())[:120]) from error
        raise


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of processes that have ended."""
    for file in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError), file.open("rb") as opened:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.unlink()


def write_atomic(path: str | Path, data: bytes | str) -> None:
    """Replace the content of a file by ``data``. Text is encoded as UTF-8."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    with atomic_output(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as indented JSON. NumPy and torch values become numbers and lists."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False, default=plain_json) + "\n")


def _mode_for(target: Path) -> int:
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
    """Convert NumPy and torch values to numbers and lists, and paths to text, as ``default`` of `json.dumps`."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
