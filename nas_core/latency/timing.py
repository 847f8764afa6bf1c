"""Under which conditions something is timed: the settings of a measurement, and torch's state while it is made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from nas_core.checks import checked_value
from nas_core.device import device_index, usable_device
from nas_core.errors import ConfigError, unknown_choice
from nas_core.precision import PRECISIONS, check_precision, tf32

CLOCKS = ("wall", "cpu", "device")


@dataclass(frozen=True, kw_only=True)
class TimingConfig:
    """How often and under which conditions a workload is timed."""

    warmup: int = 2
    """Untimed passes of a workload before its first timed one."""
    repeats: int = 10
    """Timed passes of each architecture; the reference runs once more."""
    trim: float = 0.1
    """Share of the passes dropped at each end before averaging."""
    threads: int = 1
    """Threads torch computes with while timing; the former number is restored."""
    clock: str = "wall"
    """``wall``, or ``cpu``: only the time this thread was running. On a processor shared with other jobs the latter has
    far less noise; with an idle core both are the same. Only for one thread on the CPU. ``device``: between CUDA events
    on the device, without the host's share; see :mod:`nas_core.latency.protocol`."""
    device: str = "cpu"
    """Where the workload runs, as torch writes it: cpu, cuda, cuda:1, mps."""
    precision: str = field(default="fp32", metadata={"choices": PRECISIONS})
    """Numbers that the networks compute with; for bf16 and fp16 weights and inputs are converted, as of a deployed
    network."""
    cuda_graphs: bool = False
    """Record each part of a pass as a CUDA graph, and time its replays."""

    def __post_init__(self) -> None:
        for name, least in (("warmup", 0), ("repeats", 1), ("threads", 1)):
            if checked_value(getattr(self, name), int, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least {least}")
        if not 0 <= checked_value(self.trim, float, "trim") < 0.5:
            raise ConfigError(
                f"trim is {self.trim}, expected a share from 0 to below 0.5 (0.1 drops a tenth at each end)"
            )
        kind = kind_of_device(self.device)
        if self.clock not in CLOCKS:
            raise unknown_choice("clock", self.clock, CLOCKS)
        if self.precision not in PRECISIONS:
            raise unknown_choice("precision", self.precision, PRECISIONS)
        if self.clock == "cpu" and (kind != "cpu" or self.threads != 1):
            raise ConfigError(
                f"clock cpu counts one thread on the CPU, got {self.threads} threads on {self.device}: use clock wall"
            )
        for what, asked in (
            ("clock by events", self.clock == "device"),
            ("cuda_graphs", self.cuda_graphs),
            ("precision tf32", self.precision == "tf32"),
        ):
            if asked and kind != "cuda":
                raise ConfigError(f"{what} is for CUDA devices, which {self.device} is not: leave it out, or give cuda")

    def checked_here(self) -> TimingConfig:
        """Give these settings back if this machine can measure with them; they may be for another one.

        Raises:
            ConfigError: the device is not usable here, or has no such precision.
        """
        check_precision(self.precision, usable_device(self.device))
        return self


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a collection from a file.

    Raises:
        TypeError: the workload or the timing is something else than settings by name.
    """
    for name in ("workload", "timing"):
        if not isinstance(settings.get(name) or {}, Mapping):
            raise TypeError(name)
    return dict(settings)


def reference_of(value: Any) -> float:
    """Milliseconds of a reference network as a file tells them.

    Raises:
        ValueError: they are no number above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"reference_ms ({str(value)[:20]})")
    return float(value)


def timing_of(settings: Mapping[str, Any], **changes: Any) -> TimingConfig:
    """The timing that the settings of a collection tell of, but for what is given.

    Raises:
        ConfigError: they tell of none, or garble it.
    """
    try:
        return TimingConfig(**{**settings["timing"], **changes})
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"the settings of the measurements lack or garble {error}; collect them and fit the model anew"
        ) from None


@contextmanager
def timed_conditions(config: TimingConfig) -> Iterator[None]:
    """Compute as is timed: for inference; a CUDA device is the current one, its float32 products in TF32 or not."""
    with torch.inference_mode():
        if kind_of_device(config.device) != "cuda":
            yield
            return
        with torch.cuda.device(device_index(config.device)), tf32(config.precision == "tf32"):
            yield


def kind_of_device(device: str) -> str:
    """``cpu``, ``cuda`` or ``mps``, whether it is there or not.

    Raises:
        ConfigError: torch does not know the name.
    """
    try:
        return torch.device(device).type
    except RuntimeError:
        raise ConfigError(f"device {device!r} is unknown to torch; expected cpu, cuda, cuda:1 or mps") from None
