"""Hardware, software versions and clock rates of the machine on which latency is measured."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from nas_core.device import device_index, device_name
from nas_core.machine import cpu_name

ClockState = dict[str, Any]
"""Clock rates of a device: ``sm_mhz``, ``memory_mhz``, ``power_state`` (P0 is the fastest), ``power_w``,
``power_limit_w``, ``temperature_c`` and ``reasons`` (for lower rates) with CUDA; ``governor`` and ``cpu_mhz`` with a
CPU; and ``source``, from which they are read. Unavailable values are absent."""

REASONS = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
"""Reasons for a lower clock rate, by their bit in NVML."""
THROTTLED = {"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
"""Reasons that depend on load, heat or power; the others are settings or an idle device."""
_DIFFERENT = 1.05
_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")


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


def clock_state(device: torch.device | str) -> ClockState:
    """Return the clock rates of a device; empty if unavailable. CUDA needs NVML (``pip install nvidia-ml-py``)."""
    device = torch.device(device)
    if device.type == "cpu":
        return _cpu_state(_CPU)
    return _nvml_state(device_index(device)) if device.type == "cuda" else {}


def clock_warning(states: Sequence[Mapping[str, Any]]) -> str | None:
    """Return a warning if the clock rates of measurements differ by more than 5 % or were throttled, otherwise None."""
    findings = []
    reasons = [THROTTLED & set(state.get("reasons") or ()) for state in states]
    if throttled := sum(map(bool, reasons)):
        names = ", ".join(sorted(set().union(*reasons)))
        findings.append(f"{throttled} of {len(states)} measurements were made while it was throttled ({names})")
    for name, clock in (("sm_mhz", "processor clock"), ("memory_mhz", "memory clock")):
        rates = [float(state[name]) for state in states if state.get(name)]
        if rates and max(rates) > _DIFFERENT * min(rates):
            findings.append(f"{clock} was {min(rates):,.0f} to {max(rates):,.0f} MHz")
    if len(governors := sorted({str(state["governor"]) for state in states if state.get("governor")})) > 1:
        findings.append(f"CPU frequency governor was {' and '.join(governors)}")
    return f"the clock rates of the device were not constant: {'; '.join(findings)}" if findings else None


def _nvml_state(index: int) -> ClockState:
    try:
        nvml, handle = _nvml_handle(index)
    except Exception:  # no package, no driver, or a driver without this device
        return {}
    reads: dict[str, Callable[[], Any]] = {
        "sm_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "memory_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        "power_state": lambda: f"P{int(nvml.nvmlDeviceGetPerformanceState(handle))}",
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
        "temperature_c": lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        "reasons": lambda: _reasons(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
    }
    state: ClockState = {}
    for name, read in reads.items():
        with contextlib.suppress(Exception):  # this device does not report it
            state[name] = read()
    return {"source": "nvml", **state} if state else {}


@functools.cache
def _nvml_handle(index: int) -> tuple[Any, Any]:
    uuid = str(torch.cuda.get_device_properties(index).uuid)
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return nvml, nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")


def _reasons(bits: int) -> list[str]:
    unknown = bits & ~sum(REASONS)
    return [*(name for bit, name in REASONS.items() if bits & bit), *([hex(unknown)] if unknown else [])]


def _cpu_state(folder: Path) -> ClockState:
    state: ClockState = {}
    with contextlib.suppress(OSError, ValueError):
        state["governor"] = (folder / "scaling_governor").read_text(encoding="ascii").strip()
    with contextlib.suppress(OSError, ValueError):
        state["cpu_mhz"] = round(int((folder / "scaling_cur_freq").read_text(encoding="ascii")) / 1e3)
    return {"source": "sys", **state} if state else {}
