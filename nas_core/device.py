"""Devices and threads of torch."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nas_core.errors import ConfigError
from nas_core.machine import cpu_name


def usable_device(name: str) -> torch.device:
    """Return a torch device by name, such as ``cuda:0``; raise a ConfigError if no tensor can be created on it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__
        raise ConfigError(f"device {name!r} is not usable here ({reason}); give cpu, or run 'nas-ext doctor'") from None
    return device


def device_name(device: torch.device | str) -> str:
    """Return the model name of the GPU or processor."""
    device = torch.device(device)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()


def usable_devices(names: str) -> list[str]:
    """Split a list of devices, such as ``cuda:0,cuda:1``, into names, and check that the devices exist.

    Raises:
        ConfigError: a device does not exist, a CUDA device is repeated, or CPU and CUDA devices are mixed.
    """
    devices = [name.strip() for name in names.split(",")]
    if "" in devices:
        raise ConfigError(f"device {names!r}: expected a device, or several with commas, such as cuda:0,cuda:1")
    if len(devices) == 1:
        usable_device(devices[0])
        return devices
    seen: set[str] = set()
    for name in devices:  # without creating tensors: the devices may be in exclusive mode, for their own processes
        key = _present(name)
        if seen and (key == "cpu") != ("cpu" in seen):
            raise ConfigError(
                f"device {names!r} mixes CPU and CUDA, which give slightly different results; use only one type"
            )
        if key in seen and key != "cpu":
            raise ConfigError(f"device {names!r} contains {key} twice; give each CUDA device once")
        seen.add(key)
    return devices


def _present(name: str) -> str:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device {name!r} is unknown to torch; expected cpu, cuda or cuda:1") from None
    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda":
        raise ConfigError(f"device {name!r} is not supported in a list of devices; expected cpu, cuda or cuda:1")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = device_index(device)
    if index >= count:
        raise ConfigError(f"device {name!r} does not exist; {count} CUDA devices are visible, run 'nas-ext doctor'")
    return f"cuda:{index}"


def device_index(device: torch.device | str) -> int:
    """Return the index of a device; ``cuda`` without an index means the current CUDA device."""
    device = torch.device(device)
    index: int | None = device.index  # torch's annotation lacks None
    if index is not None:
        return index
    set_here = device.type == "cuda" and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.current_device() if set_here else 0


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable Python's garbage collection inside the block, for stable timings."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
