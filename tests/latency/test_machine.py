"""Clock states of devices: reading them, and the warning if they differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nas_core.latency import machine
from nas_core.latency.machine import clock_state, clock_warning

UUID = "GPU-8f6d2f3a-2b1c-4d5e-9f00-112233445566"
FIRST = {
    "source": "nvml",
    "sm_mhz": 1755,
    "memory_mhz": 2619,
    "power_state": "P0",
    "power_w": 301.25,
    "temperature_c": 60,
    "reasons": ["sw_thermal_slowdown", "0x1000"],
}


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device that torch knows by a number without a prefix, and that does not report its limit of power."""

    def unsupported(handle: str) -> None:
        raise RuntimeError("not supported")

    package = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1755, 2: 2619}[kind],
        nvmlDeviceGetPerformanceState=lambda handle: 0,
        nvmlDeviceGetPowerUsage=lambda handle: 301_250,
        nvmlDeviceGetEnforcedPowerLimit=unsupported,
        nvmlDeviceGetTemperature=lambda handle, kind: 60,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x1020 if handle == UUID else 0,
    )
    properties = SimpleNamespace(uuid=UUID.removeprefix("GPU-"))
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: properties)
    monkeypatch.setattr("importlib.import_module", lambda name: package)
    machine._nvml_handle.cache_clear()  # private: the device of the whole process
    yield
    machine._nvml_handle.cache_clear()


def test_clocks_of_a_cuda_device(nvml: None) -> None:
    assert clock_state("cuda:0") == FIRST


def test_clocks_of_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CPU", tmp_path)
    assert clock_state("cpu") == {}
    (tmp_path / "scaling_governor").write_text("powersave\n")
    (tmp_path / "scaling_cur_freq").write_text("2394375\n")
    assert clock_state("cpu") == {"source": "sys", "governor": "powersave", "cpu_mhz": 2394}


@pytest.mark.parametrize(
    ("states", "warning"),
    [
        ([], None),
        ([{}, {"sm_mhz": 1980, "reasons": ["gpu_idle"]}, {"sm_mhz": 1965, "reasons": []}], None),
        (
            [{"reasons": ["sw_power_cap"]}, {"reasons": ["hw_slowdown", "sw_power_cap"]}, {"reasons": []}],
            "2 of 3 measurements were made while it was throttled (hw_slowdown, sw_power_cap)",
        ),
        ([{"sm_mhz": 1980}, {"sm_mhz": 1410}], "processor clock was 1,410 to 1,980 MHz"),
        ([{"governor": "performance"}, {"governor": "powersave"}], "governor was performance and powersave"),
    ],
)
def test_the_warning(states: list[dict[str, Any]], warning: str | None) -> None:
    text = clock_warning(states)
    assert text is None if warning is None else (text is not None and warning in text)
