"""What a measurement was made on: latency has no meaning without it."""

from __future__ import annotations

import os
import platform

import torch

from nas_core.device import device_name
from nas_core.machine import cpu_name


def describe_machine(device: str, threads: int) -> dict[str, str | int]:
    """Names and versions that a latency depends on, as plain types.

    ``device_name`` is the accelerator's name, or the processor's when the device is the CPU; of a CUDA device there is
    its compute ``capability`` and torch's version of ``cuda`` as well.
    """
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
    """Whether this machine has a device of that name: its processor, or one of its CUDA devices."""
    if device_name == cpu_name():
        return True
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return device_name in {torch.cuda.get_device_name(index) for index in range(count)}
