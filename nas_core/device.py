"""What torch computes on: devices by name, checked before anything is built on them, and numbers of threads."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from nas_core.errors import ConfigError
from nas_core.machine import cpu_name


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


def usable_devices(names: str) -> list[str]:
    """The devices of a list such as ``cuda:0,cuda:1``, for one process each; ``cuda`` is the current one.

    One device is tried as by :func:`usable_device`. Of several it is only asked whether they are there: a tensor made
    here would take memory of each, and a device that allows one process would then refuse the one that it is for.

    Raises:
        ConfigError: an empty name, a device that is not there, or one that is given twice (the CPU may be).
    """
    listed = [name.strip() for name in names.split(",")]
    if "" in listed:
        raise ConfigError(f"device {names!r}: expected a device, or several with commas, such as cuda:0,cuda:1")
    if len(listed) == 1:
        usable_device(listed[0])
        return listed
    seen: set[str] = set()
    for name in listed:
        key = _present(name)
        if seen and (key == "cpu") != ("cpu" in seen):
            raise ConfigError(
                f"device {names!r} mixes CPU and CUDA, whose losses differ a little; give devices of one kind"
            )
        if key in seen and key != "cpu":
            raise ConfigError(f"device {names!r} holds {key} twice; give each once (cpu,cpu is two processes)")
        seen.add(key)
    return listed


def _present(name: str) -> str:
    """What a device of a list is, with its number; errors as of :func:`usable_devices`."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device {name!r} is unknown to torch; expected cpu, cuda or cuda:1") from None
    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda":
        raise ConfigError(f"device {name!r} cannot be one of several; expected cpu, cuda or cuda:1")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = device_index(device)
    if index >= count:
        raise ConfigError(f"device {name!r} is not there ({count} CUDA devices are); see 'nas-ext doctor'")
    return f"cuda:{index}"


def device_index(device: torch.device | str) -> int:
    """The number of a device: of ``cuda`` that of the current one, which is 0 unless this process has set another."""
    device = torch.device(device)
    index: int | None = device.index  # which torch declares to be a number
    if index is not None:
        return index
    set_here = device.type == "cuda" and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.current_device() if set_here else 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Python collects no garbage inside the block: a collection takes time, and frees what it finds at that moment."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def pinned_threads(threads: int) -> Iterator[None]:
    """torch computes with this many threads inside the block, and with the former number after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
