"""Clocks of devices: what nvidia-smi prints, what NVML and Linux tell, and the sentence where they differ."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nas_core.latency import clock_state as module
from nas_core.latency.clock_state import clock_state, described_states, read_nvidia_smi, reasons_of, told_states

# As `nvidia-smi --query-gpu=uuid,clocks.sm,.. --format=csv,noheader,nounits` prints: a server's device, one of a
# notebook that tells little, and a line of a warning.
PRINTED = """\
GPU-8f6d2f3a-2b1c-4d5e-9f00-112233445566, 1980, 2619, P0, 312.45, 700.00, 54, 0x0000000000000004
GPU-00000000-1111-2222-3333-444444444444, 210, 405, P8, [N/A], [N/A], 41, [N/A]
WARNING: infoROM is corrupted at gpu 0000:01:00.0
"""
UUID = "GPU-8f6d2f3a-2b1c-4d5e-9f00-112233445566"
FIRST = {
    "source": "nvidia-smi",
    "sm_mhz": 1980,
    "memory_mhz": 2619,
    "power_state": "P0",
    "power_w": 312.45,
    "power_limit_w": 700.0,
    "temperature_c": 54,
    "reasons": ["sw_power_cap"],
}


@pytest.fixture(autouse=True)
def nothing_known_before() -> Iterator[None]:
    module._asked.clear()  # private: when it was last asked, for the whole process
    module._nvml_handle.cache_clear()  # private: likewise the device
    yield
    module._nvml_handle.cache_clear()  # private: a made-up one


def test_what_nvidia_smi_prints() -> None:
    states = read_nvidia_smi(PRINTED)
    assert states.pop(UUID) == FIRST
    (other,) = states.values()
    assert other == {
        "source": "nvidia-smi",
        "sm_mhz": 210,
        "memory_mhz": 405,
        "power_state": "P8",
        "temperature_c": 41,
    }
    assert read_nvidia_smi("") == {}


def test_names_of_bits() -> None:
    assert reasons_of(0) == []
    assert reasons_of(0x44) == ["sw_power_cap", "hw_thermal_slowdown"]
    assert reasons_of(0x1001) == ["gpu_idle", "0x1000"]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that torch knows; its number is written without a prefix, as torch does."""
    properties = SimpleNamespace(uuid=UUID.removeprefix("GPU-"))
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: properties)


def test_the_program_is_asked_where_there_is_no_nvml_and_not_too_often(
    cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        asked.append(command)
        known = "clocks_event_reasons" in command[1]  # a driver that has dropped the former name
        return SimpleNamespace(returncode=0 if known else 2, stdout=PRINTED if known else "Field is not valid")

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", absent)
    monkeypatch.setattr(subprocess, "run", run)
    now = [0.0]
    monkeypatch.setattr(module, "clock", lambda: now[0])
    assert clock_state("cuda:0") == FIRST
    assert [command[0] for command in asked] == ["nvidia-smi"] * 2
    assert clock_state("cuda:0") == {} and len(asked) == 2
    now[0] = 11.0
    assert clock_state("cuda:0") == FIRST and len(asked) == 4


def test_nvml_is_asked_by_the_device_s_own_number(cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: str) -> None:
        raise RuntimeError("not supported")

    nvml = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1755, 2: 2619}[kind],
        nvmlDeviceGetPerformanceState=lambda handle: 0,
        nvmlDeviceGetPowerUsage=lambda handle: 301_250,
        nvmlDeviceGetEnforcedPowerLimit=refuse,
        nvmlDeviceGetTemperature=lambda handle, kind: 60,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x20 if handle == UUID else 0,
    )
    monkeypatch.setattr("importlib.import_module", lambda name: nvml)
    assert clock_state("cuda:0") == {
        "source": "nvml",
        "sm_mhz": 1755,
        "memory_mhz": 2619,
        "power_state": "P0",
        "power_w": 301.25,
        "temperature_c": 60,
        "reasons": ["sw_thermal_slowdown"],
    }


def test_nothing_is_known_where_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(index: int) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr("torch.cuda.get_device_properties", unknown)
    assert clock_state("cuda:0") == {} == clock_state("mps")


def test_a_processor_s_governor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CPU", tmp_path)
    assert clock_state("cpu") == {}
    (tmp_path / "scaling_governor").write_text("powersave\n")
    (tmp_path / "scaling_cur_freq").write_text("2394375\n")
    assert clock_state("cpu") == {"source": "sys", "governor": "powersave", "cpu_mhz": 2394}


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ([], None),
        ([{}, {"sm_mhz": 1980, "reasons": ["gpu_idle"]}, {"sm_mhz": 1965, "reasons": []}], None),
        (
            [{"reasons": ["sw_power_cap"]}, {"reasons": ["hw_slowdown", "sw_power_cap"]}, {"reasons": []}],
            "2 of 3 were made while the device was throttled (hw_slowdown, sw_power_cap)",
        ),
        ([{"sm_mhz": 1980}, {"sm_mhz": 1410}], "the processors' clock was 1,410 to 1,980 MHz"),
        ([{"governor": "performance"}, {"governor": "powersave"}], "governor was performance and powersave"),
        ([{"sm_mhz": "?", "reasons": None}, {"sm_mhz": 0}], None),
    ],
)
def test_the_sentence(states: list[dict[str, Any]], said: str | None) -> None:
    told = told_states(states)
    assert told is None if said is None else (told is not None and said in told)


def test_the_clocks_in_a_few_words() -> None:
    assert described_states([]) is None and described_states([{}]) is None
    other = {**FIRST, "sm_mhz": 1965, "temperature_c": 41}
    assert described_states([FIRST, other, {}]) == (
        "processors 1,965 to 1,980 MHz, memory 2,619 MHz, 41 to 54 C, limit 700 W (nvidia-smi)"
    )
    assert described_states([{"source": "sys", "governor": "powersave", "cpu_mhz": 2394}]) == (
        "2,394 MHz, governor powersave (sys)"
    )
