"""File locks between processes. The operating system releases the locks of a process that ends."""

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
def file_lock(lock: str | Path, activity: str, advice: str) -> Iterator[int]:
    """Hold an exclusive lock (``flock``) on a file inside the block, and remove the file at the end.

    Yields the file descriptor. A child process that inherits it (``pass_fds``) holds the lock too.

    Args:
        lock: path of the lock file, which is created.
        activity: activity of the holder of the lock, for the error message, such as "writes to lat.jsonl".
        advice: alternative to waiting, for the error message, such as "give another file".

    Raises:
        ConfigError: another process holds the lock.
    """
    path = Path(lock)
    descriptor = _acquire(path, activity, advice)
    try:
        with contextlib.suppress(OSError):  # the disk is full
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield descriptor
    finally:
        path.unlink(missing_ok=True)  # before the release, so that waiting processes see that the file is gone
        os.close(descriptor)


def is_locked(lock: str | Path) -> bool | None:
    """Return whether a process holds the lock of :func:`file_lock` on a file; None if this cannot be determined."""
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


def _acquire(path: Path, activity: str, advice: str) -> int:
    make_folder(path.parent)
    with os_errors("write", path):
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise ConfigError(f"{holder} {activity}; wait for it to end, or {advice}") from None
            if os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)  # the file was removed meanwhile: try the next one
