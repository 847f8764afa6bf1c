"""Latency measurement relative to a constant reference workload, which corrects for slow changes of machine speed.

A workload is a network with its inputs. A pass of the reference runs before and after every pass of the workload, with
the same precision. Corrected latencies are comparable within one file only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nas_core.checks import Range, check_fields
from nas_core.device import device_index, gc_disabled, pinned_threads, usable_device
from nas_core.errors import ConfigError
from nas_core.models.workload import Convertible, Workload
from nas_core.precision import PRECISIONS, check_precision, half_type, tf32

CLOCKS = ("wall", "cpu", "device")
_RANGES = {
    "warmup": Range(0),
    "repeats": Range(1),
    "threads": Range(1),
    "trim": Range(0, 0.5, exclude=(0.5,)),
}


@dataclass(frozen=True, kw_only=True)
class TimingConfig:
    """Settings of a latency measurement."""

    warmup: int = 2
    """Number of untimed passes before the timed ones."""
    repeats: int = 10
    """Number of timed passes of each architecture."""
    trim: float = 0.1
    """Fraction of the passes dropped at each end, fastest and slowest, before averaging."""
    threads: int = 1
    """Number of torch threads during the measurement."""
    clock: str = field(default="wall", metadata={"choices": CLOCKS})
    """``wall``: elapsed time, with a synchronisation after each component; ``cpu``: CPU time of this thread, with less
    noise on a shared processor; ``device``: time between CUDA events."""
    device: str = "cpu"
    """Torch device of the networks: cpu, cuda, cuda:1."""
    precision: str = field(default="fp32", metadata={"choices": PRECISIONS})
    """Precision of the networks; bf16 and fp16 convert weights and inputs."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)
        kind = _device_type(self.device)
        if self.clock == "cpu" and (kind != "cpu" or self.threads != 1):
            raise ConfigError(
                f"clock cpu needs one thread on the CPU, got {self.threads} threads on {self.device}; use clock wall"
            )
        if (self.clock == "device" or self.precision == "tf32") and kind != "cuda":
            raise ConfigError(
                f"clock device and precision tf32 need a CUDA device, but the device is {self.device}; remove them, or"
                " give device cuda"
            )

    def checked_here(self) -> TimingConfig:
        """Return these settings, or raise a ConfigError if this machine does not support them."""
        check_precision(self.precision, usable_device(self.device))
        return self


def is_positive(value: Any) -> bool:
    """Return True for a finite number above 0."""
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 < value <= sys.float_info.max


def timing_of(settings: Mapping[str, Any], **changes: Any) -> TimingConfig:
    """Return the timing settings stored with measurements, with changes; raise a ConfigError if they are invalid."""
    try:
        return TimingConfig(**{**settings["timing"], **changes})
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"the timing settings stored with the measurements are invalid ({type(error).__name__}: {error}); measure"
            " again, and fit the latency model to the new measurements"
        ) from None


@dataclass(frozen=True)
class Measurement:
    """Latency of a workload, measured between passes of a reference workload."""

    components_ms: dict[str, float]
    """Trimmed mean of each component, uncorrected."""
    raw_ms: float
    """Trimmed mean of a whole pass, uncorrected."""
    std_ms: float
    """Standard deviation of the passes after trimming."""
    mad_ms: float
    """Median absolute deviation of all passes."""
    reference_ms: float
    """Median of the reference passes."""
    relative: float
    """Median of: time of a pass / mean time of the reference passes before and after it."""

    def corrected_ms(self, reference_ms: float) -> float:
        """Return the latency in ms at the machine speed at which the reference workload takes ``reference_ms``."""
        return self.relative * reference_ms


def measure(workload: Workload, reference: Workload, config: TimingConfig) -> Measurement:
    """Measure the latency of ``workload``, with a pass of ``reference`` before, between and after its passes.

    Raises:
        ConfigError: a module is in training mode, or the workload does not support the precision.
    """
    rounds: list[dict[str, float]] = []
    references: list[float] = []
    with _timing(config, workload, reference):
        for _ in range(config.warmup):
            _pass_ms(reference, config)
            _pass_ms(workload, config)
        references.append(sum(_pass_ms(reference, config).values()))
        for _ in range(config.repeats):
            rounds.append(_pass_ms(workload, config))
            references.append(sum(_pass_ms(reference, config).values()))
    totals = [sum(components.values()) for components in rounds]
    adjacent_references = (np.array(references[:-1]) + np.array(references[1:])) / 2
    return Measurement(
        components_ms={name: float(np.mean(_trimmed([p[name] for p in rounds], config.trim))) for name in rounds[0]},
        raw_ms=float(np.mean(_trimmed(totals, config.trim))),
        std_ms=float(np.std(_trimmed(totals, config.trim))),
        mad_ms=float(np.median(np.abs(np.array(totals) - np.median(totals)))),
        reference_ms=float(np.median(references)),
        relative=float(np.median(np.array(totals) / adjacent_references)),
    )


def time_passes_ms(workload: Workload, config: TimingConfig) -> list[float]:
    """Return the time in ms of each pass after the warm-up."""
    with _timing(config, workload):
        for _ in range(config.warmup):
            _pass_ms(workload, config)
        return [sum(_pass_ms(workload, config).values()) for _ in range(config.repeats)]


@contextmanager
def timed_conditions(config: TimingConfig) -> Iterator[None]:
    """Enter inference mode inside the block and, on CUDA, select the device and TF32 setting of ``config``."""
    with torch.inference_mode():
        if _device_type(config.device) != "cuda":
            yield
            return
        with torch.cuda.device(device_index(config.device)), tf32(config.precision == "tf32"):
            yield


@contextmanager
def _timing(config: TimingConfig, *workloads: Workload) -> Iterator[None]:
    for module in (module for workload in workloads for top in workload.modules for module in top.modules()):
        if module.training:
            raise ConfigError(
                f"{type(module).__name__} is in training mode, but latency is measured in evaluation mode; call .eval()"
            )
    with gc_disabled(), pinned_threads(config.threads), timed_conditions(config):
        if (half := half_type(config.precision)) is not None:
            for workload in workloads:
                _convert(workload, half)
        yield


def _convert(workload: Workload, half: torch.dtype) -> None:
    if not isinstance(workload, Convertible):
        raise ConfigError(
            f"{type(workload).__name__} supports only precision fp32, since it has no method 'convert'; remove the"
            f" precision {str(half).removeprefix('torch.')}"
        )
    workload.convert(half)


def _pass_ms(workload: Workload, config: TimingConfig) -> dict[str, float]:
    if config.clock == "device":
        return _device_ms(workload, config)
    clock = time.perf_counter if config.clock == "wall" else time.thread_time
    times = {}
    _synchronise(config.device)
    for name, component in workload.components.items():
        start = clock()
        component()
        _synchronise(config.device)
        times[name] = (clock() - start) * 1e3
    return times


def _device_ms(workload: Workload, config: TimingConfig) -> dict[str, float]:
    stream = torch.cuda.current_stream(device_index(config.device))
    count = len(workload.components) + 1
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count)]  # type: ignore[no-untyped-call]
    _synchronise(config.device)
    events[0].record(stream)
    for component, event in zip(workload.components.values(), events[1:], strict=True):
        component()
        event.record(stream)
    events[-1].synchronize()
    pairs = zip(workload.components, events, events[1:], strict=False)
    return {name: float(start.elapsed_time(end)) for name, start, end in pairs}


def _synchronise(device: str) -> None:
    if _device_type(device) == "cuda":
        torch.cuda.synchronize(device_index(device))


def _trimmed(values: Sequence[float], trim: float) -> Sequence[float]:
    """Return the values without the ``int(trim * n)`` smallest and largest of n."""
    drop = int(trim * len(values))
    return sorted(values)[drop : len(values) - drop]


def _device_type(device: str) -> str:
    try:
        return torch.device(device).type
    except RuntimeError:
        raise ConfigError(f"device {device!r} is unknown to torch; expected cpu, cuda or cuda:1") from None
