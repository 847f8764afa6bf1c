"""The machine that this process runs on, by name."""

from __future__ import annotations

import platform
from pathlib import Path

__all__ = ["cpu_name"]


def cpu_name() -> str:
    """The processor as the system calls it; Python's own answer is empty on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.lower().startswith(("model name", "hardware")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
