"""One process at a time: locks that the system gives back when their process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from nas_core.errors import ConfigError
from nas_core.files import make_folder, os_errors

__all__ = ["only_process"]


@contextlib.contextmanager
def only_process(lock: str | Path, doing: str, instead: str) -> Iterator[None]:
    """Keep other processes, and other threads, out of what is written or measured in the block.

    The lock is the system's (``flock``), the file only its name: one that a killed process left holds nobody up. It
    says who holds it, and is removed at the end. Where the folder of it does not exist, it is made.

    Args:
        doing: what another process that holds the lock does ("writes to lat.jsonl").
        instead: what the user may do but wait ("give another file").

    Raises:
        ConfigError: another process holds it. NasExtError: the file cannot be written.
    """
    path = Path(lock)
    descriptor = _taken(path, doing, instead)
    try:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # before it is given back: whoever waits for this very file sees that it is gone
        os.close(descriptor)


def _taken(path: Path, doing: str, instead: str) -> int:
    make_folder(path.parent)
    with os_errors("write", path):
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is(descriptor, path):
                    return descriptor
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise ConfigError(f"{holder} {doing}; wait for it to end, or {instead}") from None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its holder has removed it since: the next one is the lock


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
