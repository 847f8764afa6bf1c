"""How a callable is timed, and how the machine's drift is divided out.

A latency table is only as good as its labels. In HAT's published tables most of the error is slow drift of the machine
(clock, heat, neighbours), up to 48 % above the median state, and no model of the architecture can explain it.
Therefore a reference workload that never changes runs before and after *every* pass of the measured one; what counts
is the ratio of the two, which a slow or busy moment changes little. Many short interleaved passes beat one long block
for the same reason.

HAT (Wang et al., ACL 2020, arXiv 2005.14187) times in training mode with the autograd graph being built and any number
of threads; here inference mode, evaluation mode and the thread count are enforced.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from nas_core.device import pinned_threads, usable_device
from nas_core.errors import ConfigError, unknown_choice
from nas_core.models.workload import Workload

__all__ = [
    "CLOCKS",
    "Measurement",
    "TimingConfig",
    "Workload",
    "measure",
    "time_passes_ms",
    "trimmed_mean",
]


CLOCKS = ("wall", "cpu")


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
    far less noise; with an idle core both are the same. Only for one thread on the CPU."""
    device: str = "cpu"
    """Where the workload runs, as torch writes it: cpu, cuda, cuda:1, mps."""

    def __post_init__(self) -> None:
        for name, least in (("warmup", 0), ("repeats", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least {least}")
        if not 0 <= self.trim < 0.5:
            raise ConfigError(
                f"trim is {self.trim}, expected a share from 0 to below 0.5 (0.1 drops a tenth at each end)"
            )
        kind = usable_device(self.device).type
        if self.clock not in CLOCKS:
            raise unknown_choice("clock", self.clock, CLOCKS)
        if self.clock == "cpu" and (kind != "cpu" or self.threads != 1):
            raise ConfigError(
                f"clock cpu counts one thread on the CPU, got {self.threads} threads on {self.device}: use clock wall"
            )


@dataclass(frozen=True)
class Measurement:
    """One workload, timed between passes of the reference."""

    parts_ms: dict[str, float]
    """Trimmed mean of each part, as measured."""
    raw_ms: float
    """Trimmed mean of a whole pass, as measured."""
    std_ms: float
    """Standard deviation of the passes that were not trimmed."""
    mad_ms: float
    """Median absolute deviation of all passes: a spread that single outliers do not move."""
    reference_ms: float
    """Median of the reference passes in between."""
    relative: float
    """Median over the passes of own time / mean of the reference's time just before and just after."""

    def corrected_ms(self, reference_ms: float) -> float:
        """What the pass takes in the state of the machine in which the reference takes ``reference_ms``."""
        return self.relative * reference_ms


def trimmed_mean(values: Sequence[float], trim: float) -> float:
    """Mean without the ``int(trim * n)`` lowest and highest of the n values."""
    return float(np.mean(_kept(values, trim)))


def measure(workload: Workload, reference: Workload, config: TimingConfig) -> Measurement:
    """Time ``workload`` with one pass of ``reference`` before, between and after its passes.

    Raises:
        ConfigError: a module of either is in training mode.
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
    totals = [sum(parts.values()) for parts in rounds]
    around = (np.array(references[:-1]) + np.array(references[1:])) / 2
    return Measurement(
        parts_ms={name: trimmed_mean([parts[name] for parts in rounds], config.trim) for name in rounds[0]},
        raw_ms=trimmed_mean(totals, config.trim),
        std_ms=float(np.std(_kept(totals, config.trim))),
        mad_ms=float(np.median(np.abs(np.array(totals) - np.median(totals)))),
        reference_ms=float(np.median(references)),
        relative=float(np.median(np.array(totals) / around)),
    )


def time_passes_ms(workload: Workload, config: TimingConfig) -> list[float]:
    """Whole passes of one workload alone, in ms, after the warm-up."""
    with _timing(config, workload):
        for _ in range(config.warmup):
            _pass_ms(workload, config)
        return [sum(_pass_ms(workload, config).values()) for _ in range(config.repeats)]


@contextmanager
def _timing(config: TimingConfig, *workloads: Workload) -> Iterator[None]:
    for workload in workloads:
        for module in workload.modules:
            training = next((type(m).__name__ for m in module.modules() if m.training), None)
            if training is not None:
                raise ConfigError(
                    f"{training} is in training mode, latency is measured in evaluation mode: call .eval()"
                )
    collecting = gc.isenabled()
    gc.disable()
    try:
        with pinned_threads(config.threads), torch.inference_mode():
            yield
    finally:
        if collecting:
            gc.enable()


def _pass_ms(workload: Workload, config: TimingConfig) -> dict[str, float]:
    now = time.perf_counter if config.clock == "wall" else time.thread_time
    times = {}
    for name, part in workload.parts.items():
        _synchronise(config.device)
        start = now()
        part()
        _synchronise(config.device)
        times[name] = (now() - start) * 1e3
    return times


def _synchronise(device: str) -> None:
    """Wait until the device has done what it was given; a kernel launch alone takes no time."""
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.synchronize(device)
    elif kind == "mps":
        torch.mps.synchronize()


def _kept(values: Sequence[float], trim: float) -> Sequence[float]:
    drop = int(trim * len(values))
    return sorted(values)[drop : len(values) - drop]
