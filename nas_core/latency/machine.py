"""What a measurement was made on: latency has no meaning without it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

__all__ = ["describe_machine"]


def describe_machine(device: str, threads: int) -> dict[str, str | int]:
    """Names and versions that a latency depends on, as plain types.

    ``device_name`` is the accelerator's name, or the processor's when the device is the CPU.
    """
    kind = torch.device(device).type
    return {
        "device": device,
        "device_name": torch.cuda.get_device_name(device) if kind == "cuda" else _cpu_name(),
        "cpu": _cpu_name(),
        "cores": os.cpu_count() or 0,
        "threads": threads,
        "torch": str(torch.__version__),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _cpu_name() -> str:
    """The processor as the system calls it; Python's own answer is empty on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.lower().startswith(("model name", "hardware")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
