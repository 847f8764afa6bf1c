"""What torch computes on: devices by name, checked before anything is built on them, and numbers of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nas_core.errors import ConfigError
from nas_core.machine import cpu_name

__all__ = ["device_name", "pinned_threads", "usable_device"]


def usable_device(name: str) -> torch.device:
    """The device, after a tensor was made on it.

    Raises:
        ConfigError: torch does not know the name, or cannot use the device here.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise ConfigError(f"device {name!r} is not usable here ({reason}); give cpu, or see 'nas-ext doctor'") from None
    return device


def device_name(device: torch.device | str) -> str:
    """The device as its maker calls it: the GPU's model, or the processor's."""
    device = torch.device(device)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """torch computes with this many threads inside the block, and with the former number after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
