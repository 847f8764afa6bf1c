"""One benchmark in a process of its own: how it ended, what it took, and how busy others kept the machine."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ended", "run", "shortened"]

PATIENCE_S = 10.0
"""Time to end by itself after an interrupt, before it is killed."""
_ADDRESSES = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"`<>|)\]]+|(?<=host=)'[^']*'", re.IGNORECASE)
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)+")


@dataclass(frozen=True)
class Ended:
    """What became of a process."""

    code: int | None
    """Its exit code; None: its time was over."""
    seconds: float
    cpu_s: float
    """Processor time of it and of what it started."""
    others: float | None
    """Cores that others kept busy meanwhile, on average; None where the system does not tell."""
    last: str
    """The last line it wrote."""


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float) -> Ended:
    """Run a command in a folder, its output in ``log.txt`` there, for so many seconds at most.

    It has a group of processes of its own, which ends with it, also when this process is interrupted.
    """
    log, busy, own, begin = folder / "log.txt", _busy_s(), _children_s(), time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    seconds, cpu_s, now = time.monotonic() - begin, _children_s() - own, _busy_s()
    others = None if busy is None or now is None else max(0.0, (now - busy - cpu_s) / max(seconds, 1e-3))
    lines = [line.strip() for line in re.split(r"[\r\n]", log.read_text(encoding="utf-8", errors="replace"))]
    last = next((line for line in reversed(lines) if line), "")
    return Ended(code, seconds, cpu_s, others, shortened(last))


def shortened(line: str, longest: int = 200) -> str:
    """A line without addresses and without the folders of its paths, which belong to one machine."""
    return _FOLDERS.sub("", _ADDRESSES.sub("URL", line))[:longest]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a process that still runs, so that it can tidy up, then kill what is left of its group."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)
    with contextlib.suppress(ProcessLookupError):  # none is left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _busy_s() -> float | None:
    """Seconds that all cores were busy since the machine began, with those that a host took away."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    idle, waiting = ticks[3:5]
    return (sum(ticks) - idle - waiting) / os.sysconf("SC_CLK_TCK")
