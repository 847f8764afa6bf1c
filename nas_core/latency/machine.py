"""Hardware and software versions of the machine on which latency is measured."""

from __future__ import annotations

import os
import platform

import torch

from nas_core.device import device_name
from nas_core.machine import cpu_name


def describe_machine(device: str, threads: int) -> dict[str, str | int]:
    """Return the hardware names and software versions on which latency depends."""
    cuda: dict[str, str | int] = {}
    if torch.device(device).type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        cuda = {"capability": f"{major}.{minor}", "cuda": str(torch.version.cuda)}
    return {
        "device": device,
        "device_name": device_name(device),
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 0,
        "threads": threads,
        "torch": str(torch.__version__),
        "platform": f"{platform.system()} {platform.machine()}",
        **cuda,
    }


def is_here(device_name: str) -> bool:
    """Return whether ``device_name`` is the processor or a CUDA device of this machine."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return device_name in {cpu_name(), *(torch.cuda.get_device_name(index) for index in range(count))}
