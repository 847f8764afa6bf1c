"""Locks between processes; the system releases them when their process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from nas_core.errors import ConfigError
from nas_core.files.writing import make_folder, os_errors

_CLOCKS_S = 60.0
_HOLDER = re.compile(r"process (\d+) on (\S+)")


@contextlib.contextmanager
def only_process(lock: str | Path, doing: str, instead: str) -> Iterator[int]:
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
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield descriptor
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # before the release, so that waiting processes see that the file is gone
        os.close(descriptor)


def held(lock: str | Path) -> bool | None:
    """Exclude other processes and threads from the block by ``flock``.

    The lock file contains the name of its process and is removed at the end. The block gets its descriptor; a child
    that inherits it (``pass_fds``) holds the lock too.

    Args:
        doing: activity for the message ("writes to lat.jsonl").
        instead: alternative to waiting ("give another file").

    Raises:
        ConfigError: another process holds the lock.
    """
    if os.path.exists(lock) and not os.path.isfile(lock):  # reading a pipe would wait
        return None
    try:
        holder = _HOLDER.match(Path(lock).read_text(encoding="utf-8", errors="replace"))
        written = Path(lock).stat().st_mtime
    except FileNotFoundError:
        return False
    except OSError:
        return None
    if holder is None or holder[2] != socket.gethostname():
        return None
    return _lives(int(holder[1]), written)


def _lives(process: int, since: float) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    with contextlib.suppress(OSError, IndexError, ValueError):  # without /proc, an unreaped child counts as alive
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        if fields[0] == "Z":
            return False
        up_s = float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0])
        started = time.time() - up_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return started <= since + _CLOCKS_S
    return True


def _acquire(path: Path, doing: str, instead: str) -> int:
    make_folder(path.parent)
    with os_errors("write", path):
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same_file(descriptor, path):
                    return descriptor
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another process"
                os.close(descriptor)
                raise ConfigError(f"{holder} {doing}; wait for it to end, or {instead}") from None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the file was removed meanwhile: try the next one


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
