"""Locks between processes; the system releases them when their process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from nas_core.errors import ConfigError
from nas_core.files.writing import make_folder, os_errors


@contextlib.contextmanager
def file_lock(lock: str | Path, doing: str, instead: str) -> Iterator[int]:
    """Exclude other processes and threads from the block by ``flock``.

    The lock file contains the name of its process and is removed at the end. The block gets its descriptor; a child
    that inherits it (``pass_fds``) holds the lock too.

    Args:
        doing: activity of the holder, for the message ("writes to lat.jsonl").
        instead: alternative to waiting ("give another file").

    Raises:
        ConfigError: another process holds the lock.
    """
    path = Path(lock)
    descriptor = _acquire(path, doing, instead)
    try:
        with contextlib.suppress(OSError):  # the disk is full
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield descriptor
    finally:
        path.unlink(missing_ok=True)  # before the release, so that waiting processes see that the file is gone
        os.close(descriptor)


def is_locked(lock: str | Path) -> bool | None:
    """Return whether a process holds a lock of :func:`file_lock`; None if it cannot be determined."""
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _acquire(path: Path, doing: str, instead: str) -> int:
    make_folder(path.parent)
    with os_errors("write", path):
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise ConfigError(f"{holder} {doing}; wait for it to end, or {instead}") from None
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # the file was removed meanwhile: try the next one
