"""How a callable is timed, and how the machine's drift is divided out.

A latency table is only as good as its labels. In HAT's published tables most of the error is slow drift of the machine
(clock, heat, neighbours), up to 48 % above the median state, and no model of the architecture can explain it.
Therefore a reference workload that never changes runs before and after *every* pass of the measured one; what counts
is the ratio of the two, which a slow or busy moment changes little. Many short interleaved passes beat one long block
for the same reason.

HAT (Wang et al., ACL 2020, arXiv 2005.14187) times in training mode with the autograd graph being built and any number
of threads; here inference mode, evaluation mode and the thread count are enforced.

**On a CUDA device** the clock says what is counted. ``wall`` (the default) is what a user of one request waits: from
the call to the device's last result, the launching of kernels included, with a synchronisation after each part.
``device`` is the time between two CUDA events on the device's stream: from the moment at which the first kernel could
begin to the end of the last one, with the gaps in which the device waits for the host, but without what the host does
after the last launch; parts follow each other without a synchronisation. With ``cuda_graphs`` a part is recorded once
and launched as a whole, as a server does that replays it: hardly anything of the host is left in either clock.

**The reference** runs under the same settings as what it is divided by, its precision and its graphs included. Products
in half precision follow the memory's clock where those in float32 follow the processors', and a launch follows the
host's: only like work is slowed down alike. So milliseconds of one file belong together; how two precisions compare is
told by the plain times ``raw_ms``, since the state of the machine is another for each of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from nas_core.device import device_index, pinned_threads, uncollected
from nas_core.errors import ConfigError
from nas_core.latency.clock_state import ClockState, clock_state
from nas_core.latency.cuda_graphs import recorded
from nas_core.latency.timing import TimingConfig, kind_of_device, timed_conditions
from nas_core.models.workload import Convertible, Workload
from nas_core.precision import half_type


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
    clock_state: ClockState = field(default_factory=dict)
    """Clocks of the device right after the passes, as far as they can be read; see
    :func:`nas_core.latency.clock_state.clock_state`."""

    def corrected_ms(self, reference_ms: float) -> float:
        """What the pass takes in the state of the machine in which the reference takes ``reference_ms``."""
        return self.relative * reference_ms


def trimmed_mean(values: Sequence[float], trim: float) -> float:
    """Mean without the ``int(trim * n)`` lowest and highest of the n values."""
    return float(np.mean(_kept(values, trim)))


def measure(workload: Workload, reference: Workload, config: TimingConfig) -> Measurement:
    """Time ``workload`` with one pass of ``reference`` before, between and after its passes; both as :func:`prepared`
    makes them.

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
        std_ms=float(np.std(_kept(totals, config.trim))),
        mad_ms=float(np.median(np.abs(np.array(totals) - np.median(totals)))),
        reference_ms=float(np.median(references)),
        relative=float(np.median(np.array(totals) / around)),
        clock_state=state,
    )


def time_passes_ms(workload: Workload, config: TimingConfig) -> list[float]:
    """Whole passes of one workload alone, in ms, after the warm-up; errors as of :func:`measure`."""
    workload = prepared(workload, config)
    with _timing(config, workload):
        for _ in range(config.warmup):
            _pass_ms(workload, config)
        return [sum(_pass_ms(workload, config).values()) for _ in range(config.repeats)]


class PreparedWorkload:
    """A workload under the conditions of a :class:`TimingConfig`."""

    def __init__(self, workload: Workload, config: TimingConfig) -> None:
        self.conditions = _conditions(config)
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
    """The workload as it is timed: converted to the precision and recorded as CUDA graphs, where that is asked for.

    :func:`measure` does so by itself; what is measured again and again, as a reference, is prepared once.

    Raises:
        ConfigError: this workload computes in ``fp32`` alone, or cannot be recorded.
    """
    if (config.precision == "fp32" and not config.cuda_graphs) or _is_prepared(workload, config):
        return workload
    with _timing(config, workload):
        return PreparedWorkload(workload, config)


def _is_prepared(workload: Workload, config: TimingConfig) -> bool:
    return getattr(workload, "conditions", None) == _conditions(config)


def _conditions(config: TimingConfig) -> tuple[str, bool]:
    return config.precision, config.cuda_graphs


@contextmanager
def _timing(config: TimingConfig, *workloads: Workload) -> Iterator[None]:
    for workload in workloads:
        for module in workload.modules:
            training = next((type(m).__name__ for m in module.modules() if m.training), None)
            if training is not None:
                raise ConfigError(
                    f"{training} is in training mode, latency is measured in evaluation mode: call .eval()"
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
    """Wait until the device has done what it was given; a kernel launch alone takes no time."""
    kind = kind_of_device(device)
    if kind == "cuda":
        torch.cuda.synchronize(device_index(device))
    elif kind == "mps":
        torch.mps.synchronize()


def _kept(values: Sequence[float], trim: float) -> Sequence[float]:
    drop = int(trim * len(values))
    return sorted(values)[drop : len(values) - drop]
