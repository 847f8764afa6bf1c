"""Timing of a callable, with the machine's drift divided out.

In HAT's published latency tables (Wang et al., ACL 2020, arXiv 2005.14187) most of the error is slow drift of the
machine, up to 48 % above its median state. Here a reference workload that never changes runs before and after every
pass of the measured one, and the ratio of the two counts.

HAT times in training mode, with the autograd graph and any number of threads. Here inference mode, evaluation mode and
the number of threads are enforced.

Clocks of a CUDA device: ``wall`` is the time from the call to the device's last result, kernel launches included, with
a synchronisation after each part. ``device`` is the time between two CUDA events on the device's stream, without what
the host does after the last launch. With ``cuda_graphs`` each part is recorded once and replayed as a whole.

The reference runs in the same precision and with the same graphs as the workload, because only like work is slowed
down alike. Corrected milliseconds therefore compare within one file; to compare two precisions use ``raw_ms``.
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

from nas_core.checks import checked_value
from nas_core.device import device_index, pinned_threads, uncollected, usable_device
from nas_core.errors import ConfigError, unknown_choice
from nas_core.latency.cuda_graphs import recorded
from nas_core.latency.machine import ClockState, clock_state
from nas_core.models.workload import Convertible, Workload
from nas_core.precision import PRECISIONS, check_precision, half_type, tf32

CLOCKS = ("wall", "cpu", "device")


@dataclass(frozen=True, kw_only=True)
class TimingConfig:
    """Conditions and number of the timed passes of a workload."""

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
        kind = _device_type(self.device)
        for name, choices in (("clock", CLOCKS), ("precision", PRECISIONS)):
            if getattr(self, name) not in choices:
                raise unknown_choice(name, getattr(self, name), choices)
        if self.clock == "cpu" and (kind != "cpu" or self.threads != 1):
            raise ConfigError(
                f"clock cpu counts one thread on the CPU, got {self.threads} threads on {self.device}: use clock wall"
            )
        for setting, is_set in (
            ("clock by events", self.clock == "device"),
            ("cuda_graphs", self.cuda_graphs),
            ("precision tf32", self.precision == "tf32"),
        ):
            if is_set and kind != "cuda":
                raise ConfigError(
                    f"{setting} is for CUDA devices, which {self.device} is not: leave it out, or give cuda"
                )

    def checked_here(self) -> TimingConfig:
        """Return these settings if this machine can measure with them.

        Raises:
            ConfigError: the device is not usable here, or lacks the precision.
        """
        check_precision(self.precision, usable_device(self.device))
        return self


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a collection from a file.

    Raises:
        TypeError: the workload or the timing is no mapping.
    """
    for name in ("workload", "timing"):
        if not isinstance(settings.get(name) or {}, Mapping):
            raise TypeError(name)
    return dict(settings)


def reference_of(value: Any) -> float:
    """Return the milliseconds of a reference network from a file.

    Raises:
        ValueError: the value is no number above 0.
    """
    if not is_positive(value):
        raise ValueError(f"reference_ms ({str(value)[:20]})")
    return float(value)


def is_positive(value: Any) -> bool:
    """Return True for a finite number above 0; JSON allows others, and ``true``."""
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 < value <= sys.float_info.max


def timing_of(settings: Mapping[str, Any], **changes: Any) -> TimingConfig:
    """Return the timing in the settings of a collection, with some changes.

    Raises:
        ConfigError: the settings have no valid timing.
    """
    try:
        return TimingConfig(**{**settings["timing"], **changes})
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"the settings of the measurements lack or garble {error}; collect them and fit the model anew"
        ) from None


@dataclass(frozen=True)
class Measurement:
    """Times of one workload between passes of the reference."""

    parts_ms: dict[str, float]
    """Trimmed mean of each part, as measured."""
    raw_ms: float
    """Trimmed mean of a whole pass, as measured."""
    std_ms: float
    """Standard deviation of the passes that were not trimmed."""
    mad_ms: float
    """Median absolute deviation of all passes, which single outliers do not move."""
    reference_ms: float
    """Median of the reference passes in between."""
    relative: float
    """Median over the passes of the pass's time / mean of the reference's time just before and just after."""
    clock_state: ClockState = field(default_factory=dict)
    """Clocks of the device right after the passes, see :func:`nas_core.latency.machine.clock_state`."""

    def corrected_ms(self, reference_ms: float) -> float:
        """Return the time of a pass in the state of the machine in which the reference takes ``reference_ms``."""
        return self.relative * reference_ms


def trimmed_mean(values: Sequence[float], trim: float) -> float:
    """Return the mean without the ``int(trim * n)`` lowest and highest of the n values."""
    return float(np.mean(_trimmed(values, trim)))


def measure(workload: Workload, reference: Workload, config: TimingConfig) -> Measurement:
    """Time ``workload`` with one pass of ``reference`` before, between and after its passes.

    Both are prepared by :func:`prepared` first.

    Raises:
        ConfigError: a module of either is in training mode; others as of :func:`prepared`.
    """
    rounds: list[dict[str, float]] = []
    references: list[float] = []
    workload, reference = prepared(workload, config), prepared(reference, config)
    with _timing(config, workload, reference):
        for _ in range(config.warmup):
            _pass_ms(reference, config)
            _pass_ms(workload, config)
        references.append(sum(_pass_ms(reference, config).values()))
        for _ in range(config.repeats):
            rounds.append(_pass_ms(workload, config))
            references.append(sum(_pass_ms(reference, config).values()))
        state = clock_state(config.device)
    totals = [sum(parts.values()) for parts in rounds]
    around = (np.array(references[:-1]) + np.array(references[1:])) / 2
    return Measurement(
        parts_ms={name: trimmed_mean([parts[name] for parts in rounds], config.trim) for name in rounds[0]},
        raw_ms=trimmed_mean(totals, config.trim),
        std_ms=float(np.std(_trimmed(totals, config.trim))),
        mad_ms=float(np.median(np.abs(np.array(totals) - np.median(totals)))),
        reference_ms=float(np.median(references)),
        relative=float(np.median(np.array(totals) / around)),
        clock_state=state,
    )


def time_passes_ms(workload: Workload, config: TimingConfig) -> list[float]:
    """Return the milliseconds of whole passes of one workload after the warm-up; errors as of :func:`measure`."""
    workload = prepared(workload, config)
    with _timing(config, workload):
        for _ in range(config.warmup):
            _pass_ms(workload, config)
        return [sum(_pass_ms(workload, config).values()) for _ in range(config.repeats)]


class PreparedWorkload:
    """Workload under the precision and graphs of a :class:`TimingConfig`."""

    def __init__(self, workload: Workload, config: TimingConfig) -> None:
        self.conditions = config.precision, config.cuda_graphs
        self.modules = workload.modules
        half = half_type(config.precision)
        if half is not None:
            if not isinstance(workload, Convertible):
                raise ConfigError(
                    f"{type(workload).__name__} computes in fp32 alone, it has no method 'convert'; leave precision"
                    f" {config.precision} out"
                )
            workload.convert(half)
        self.parts = recorded(workload.parts, config.device) if config.cuda_graphs else workload.parts


def prepared(workload: Workload, config: TimingConfig) -> Workload:
    """Return the workload converted to the precision and recorded as CUDA graphs, as the config demands.

    :func:`measure` prepares both of its workloads; prepare a reference once if it is measured again and again.

    Raises:
        ConfigError: this workload computes in ``fp32`` alone, or cannot be recorded.
    """
    conditions = config.precision, config.cuda_graphs
    if conditions in (("fp32", False), getattr(workload, "conditions", None)):
        return workload
    with _timing(config, workload):
        return PreparedWorkload(workload, config)


@contextmanager
def timed_conditions(config: TimingConfig) -> Iterator[None]:
    """Enter inference mode and, on CUDA, make the device the current one and switch TF32 as the precision demands."""
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
                f"{type(module).__name__} is in training mode, latency is measured in evaluation mode: call .eval()"
            )
    with uncollected(), pinned_threads(config.threads), timed_conditions(config):
        yield


def _pass_ms(workload: Workload, config: TimingConfig) -> dict[str, float]:
    if config.clock == "device":
        return _device_ms(workload, config)
    now = time.perf_counter if config.clock == "wall" else time.thread_time
    times = {}
    _synchronise(config.device)
    for name, part in workload.parts.items():
        start = now()
        part()
        _synchronise(config.device)
        times[name] = (now() - start) * 1e3
    return times


def _device_ms(workload: Workload, config: TimingConfig) -> dict[str, float]:
    """Milliseconds between events on the device's current stream; the host waits once, for the last one."""
    stream = torch.cuda.current_stream(device_index(config.device))
    count = len(workload.parts) + 1
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count)]  # type: ignore[no-untyped-call]
    _synchronise(config.device)
    events[0].record(stream)
    for part, event in zip(workload.parts.values(), events[1:], strict=True):
        part()
        event.record(stream)
    events[-1].synchronize()
    pairs = zip(workload.parts, events, events[1:], strict=False)
    return {name: float(start.elapsed_time(end)) for name, start, end in pairs}


def _synchronise(device: str) -> None:
    """Wait for the device's kernels, since a launch returns at once."""
    kind = _device_type(device)
    if kind == "cuda":
        torch.cuda.synchronize(device_index(device))
    elif kind == "mps":
        torch.mps.synchronize()


def _trimmed(values: Sequence[float], trim: float) -> Sequence[float]:
    drop = int(trim * len(values))
    return sorted(values)[drop : len(values) - drop]


def _device_type(device: str) -> str:
    """``cpu``, ``cuda`` or ``mps``, also of a device that is not here."""
    try:
        return torch.device(device).type
    except RuntimeError:
        raise ConfigError(f"device {device!r} is unknown to torch; expected cpu, cuda, cuda:1 or mps") from None
