"""The state of a device's clocks beside a measurement: a latency holds for the clock rate it was measured at.

Of a CUDA device from NVML by ``pynvml`` (of the package ``nvidia-ml-py``), else from the program ``nvidia-smi``;
neither is needed. Of a CPU from Linux's ``/sys``.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from nas_core.device import device_index

ClockState = dict[str, Any]
"""Plain data: ``source``, and what of the rest could be read: ``sm_mhz``, ``memory_mhz``, ``power_state`` (P0 is the
fastest), ``power_w``, ``power_limit_w``, ``temperature_c``, ``reasons`` (why the clocks are not higher); of a CPU
``governor`` and ``cpu_mhz``. Empty where nothing can be read."""

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
"""NVML's bits of what holds the clocks down."""
THROTTLED = ("sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
"""Those that come and go with load, heat and power; the others are settings, or rest."""
APART = 1.05
"""Clock rates that differ by more than this factor are another state."""

_FIELDS = {
    "uuid": "uuid",
    "sm_mhz": "clocks.sm",
    "memory_mhz": "clocks.mem",
    "power_state": "pstate",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
    "reasons": "clocks_throttle_reasons.active",
}
_RENAMED = {"clocks_throttle_reasons.active": "clocks_event_reasons.active"}
"""Names of drivers from 535 on, which know the former ones as long as those last."""
_SMI_TIMEOUT_S = 10
_SMI_EVERY_S = 10.0
"""The program takes up to a second: it is not asked more often."""
_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")

clock = time.monotonic


def clock_state(device: torch.device | str) -> ClockState:
    """What the clocks of the device are now; never raises."""
    device = torch.device(device)
    if device.type == "cpu":
        return _cpu_state(_CPU)
    if device.type != "cuda":
        return {}
    index = device_index(device)
    uuid = _uuid(index)
    if uuid is None:
        return {}
    return _nvml_state(uuid) or _smi_state(uuid)


def told_states(states: Sequence[Mapping[str, Any]]) -> str | None:
    """One sentence where measurements of one collection were made in different states of the clocks, or throttled; None
    where nothing is to be said, or nothing known."""
    told = []
    reasons = [set(state.get("reasons") or ()) & set(THROTTLED) for state in states]
    if throttled := sum(map(bool, reasons)):
        names = ", ".join(sorted(set().union(*reasons)))
        told.append(f"{throttled} of {len(states)} were made while the device was throttled ({names})")
    for name, what in (("sm_mhz", "the processors' clock"), ("memory_mhz", "the memory's clock")):
        rates = [float(state[name]) for state in states if _is_rate(state.get(name))]
        if rates and max(rates) > APART * min(rates):
            told.append(f"{what} was {min(rates):,.0f} to {max(rates):,.0f} MHz")
    if len(governors := sorted({str(state["governor"]) for state in states if state.get("governor")})) > 1:
        told.append(f"the processor's governor was {' and '.join(governors)}")
    return f"measurements were made in different states of the clocks: {'; '.join(told)}" if told else None


def described_states(states: Sequence[Mapping[str, Any]]) -> str | None:
    """The clocks of all measurements in a few words, such as ``processors 1,980 MHz, memory 2,619 MHz, 41 to 54 C,
    limit 700 W (nvml)``; None where nothing is known."""
    told = []
    for name, before, unit in (
        ("sm_mhz", "processors ", "MHz"),
        ("cpu_mhz", "", "MHz"),
        ("memory_mhz", "memory ", "MHz"),
        ("temperature_c", "", "C"),
        ("power_limit_w", "limit ", "W"),
    ):
        values = [float(state[name]) for state in states if _is_rate(state.get(name))]
        if values:
            ends = dict.fromkeys(f"{value:,.0f}" for value in (min(values), max(values)))
            told.append(f"{before}{' to '.join(ends)} {unit}")
    told += sorted({f"governor {state['governor']}" for state in states if state.get("governor")})
    sources = sorted({str(state["source"]) for state in states if state.get("source")})
    return f"{', '.join(told)} ({', '.join(sources) or 'unknown'})" if told else None


def _is_rate(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def reasons_of(bits: int) -> list[str]:
    """The names of NVML's bits of what holds the clocks down; unknown ones by their number."""
    known = [name for bit, name in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return [*known, *([hex(rest)] if rest else [])]


def _uuid(index: int) -> str | None:
    """Give the number by which the driver knows a device; None where it does not answer."""
    try:
        uuid = str(torch.cuda.get_device_properties(index).uuid)
    except (AttributeError, RuntimeError, AssertionError):
        return None
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def _nvml_state(uuid: str) -> ClockState:
    try:
        nvml, handle = _nvml_handle(uuid)
    except Exception:  # no package, no library, no driver, or one that does not know this device
        return {}
    reads: dict[str, Callable[[], Any]] = {
        "sm_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "memory_mhz": lambda: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        "power_state": lambda: f"P{int(nvml.nvmlDeviceGetPerformanceState(handle))}",
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3,
        "temperature_c": lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        "reasons": lambda: reasons_of(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))),
    }
    state: ClockState = {}
    for name, read in reads.items():
        try:
            state[name] = read()
        except Exception:  # what this device does not tell
            continue
    return {"source": "nvml", **state} if state else {}


@functools.cache
def _nvml_handle(uuid: str) -> tuple[Any, Any]:
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return nvml, nvml.nvmlDeviceGetHandleByUUID(uuid)


_asked: dict[str, float] = {}


def _smi_state(uuid: str) -> ClockState:
    if clock() - _asked.get(uuid, -_SMI_EVERY_S) < _SMI_EVERY_S:
        return {}
    _asked[uuid] = clock()
    for renamed in ({}, _RENAMED):
        fields = ",".join(renamed.get(field, field) for field in _FIELDS.values())
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=False)
        except (OSError, subprocess.SubprocessError):
            return {}
        if done.returncode == 0:
            return read_nvidia_smi(done.stdout).get(uuid, {})
    return {}


def read_nvidia_smi(text: str) -> dict[str, ClockState]:
    """UUID -> state, of what ``nvidia-smi`` prints as CSV without header and units; what a device does not tell, it
    prints as ``[N/A]``."""
    states: dict[str, ClockState] = {}
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(_FIELDS):
            continue
        row = dict(zip(_FIELDS, values, strict=True))
        read = {name: _smi_value(name, value) for name, value in row.items() if name != "uuid"}
        known = {name: value for name, value in read.items() if value is not None}
        states[row["uuid"]] = {"source": "nvidia-smi", **known}
    return states


def _smi_value(name: str, text: str) -> Any:
    try:
        if name == "reasons":
            return reasons_of(int(text, 16))
        if name == "power_state":
            return text if text.startswith("P") and text[1:].isdigit() else None
        return float(text) if name.startswith("power") else int(text)
    except ValueError:
        return None


def _cpu_state(folder: Path) -> ClockState:
    state: ClockState = {}
    for name, file in (("governor", "scaling_governor"), ("cpu_mhz", "scaling_cur_freq")):
        try:
            text = (folder / file).read_text(encoding="ascii").strip()
            state[name] = text if name == "governor" else round(int(text) / 1e3)
        except (OSError, ValueError):
            continue
    return {"source": "sys", **state} if state else {}
