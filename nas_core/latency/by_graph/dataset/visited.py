"""One network that is ready to be measured in all runtimes, a few passes at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.device import pinned_threads
from nas_core.errors import ConfigError
from nas_core.graph.onnx import read_onnx
from nas_core.latency.by_graph.dataset.export import calibrate, exported, without_weights
from nas_core.latency.by_graph.dataset.plan import PlannedNetwork
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES, NetworkWorkload, workload
from nas_core.latency.protocol import Measurement, measure, time_passes_ms
from nas_core.latency.timing import TimingConfig

_AGREE = 0.02
"""Largest difference of two runtimes' outputs, relative to the largest output."""
_FEW_PASSES = 3
"""Passes of a network that tell about how long it takes."""


@dataclass(frozen=True, kw_only=True)
class NetworkSetConfig:
    """Which networks are measured, in what, and how often beyond a :class:`TimingConfig`."""

    runtimes: tuple[str, ...] = RUNTIMES
    """Runtimes that measure: ``onnxruntime``, ``torch``, or both."""
    seed: int = 0
    """Seed of the list of networks."""
    visits: int = 4
    """How often a network is measured, each time with the warm-up and the repeats of the timing. What other jobs do to
    a processor lasts longer than a few passes: visits some seconds apart halve the noise."""
    together: int = 8
    """Networks that are visited in turn; a killed run loses as many."""
    least_ms: float = 5.0
    """A network whose pass is shorter runs several times between two passes of the reference, which otherwise would
    leave it with cold caches; how much that costs depends on what else the machine does."""
    most_ms: float = 250.0
    """A network whose pass takes longer in any runtime is skipped."""
    most_batch: int = 1
    """Networks compute batches of 1 to so many, drawn by chance."""

    def __post_init__(self) -> None:
        for name in ("visits", "together", "most_batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("least_ms", "most_ms"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected milliseconds above 0")


class BrokenNetwork(Exception):
    """Why a network is skipped."""


class VisitedNetwork:
    """A network, built, exported and in every runtime.

    Raises:
        BrokenNetwork: it is too slow, an output is not finite, or differs between runtimes. Others: whatever torch,
        the exporter and onnxruntime raise.
    """

    def __init__(self, planned: PlannedNetwork, config: NetworkSetConfig, timing: TimingConfig) -> None:
        self._timing, self.seconds = timing, 0.0
        begin = time.perf_counter()
        with pinned_threads(timing.threads):
            network, inputs = planned.family.network(planned.settings)
            start = time.perf_counter()
            outputs = calibrate(network, inputs)
            first_ms = (time.perf_counter() - start) * 1e3
            if first_ms > 4 * config.most_ms:  # before anything that takes a giant still longer
                raise BrokenNetwork(f"the first pass takes {first_ms:.0f} ms, more than 4 x {config.most_ms:g} ms")
            if not all(output.isfinite().all() for output in outputs):
                raise BrokenNetwork("the output is not finite")
            content = exported(network, inputs)
        self.content = without_weights(content)
        """The ONNX file to keep."""
        read = read_onnx(self.content, warn=False)
        self._costs = {
            "nodes": len(read.graph),
            "flops_g": read.flops_g,
            "params_m": read.params_m,
            "access_m": read.access_m,
            "unknown": dict(read.unknown),
        }
        self._workloads = {name: workload(name, network, inputs, content, timing) for name in config.runtimes}
        check_outputs({name: work.outputs() for name, work in self._workloads.items()})
        for name, work in self._workloads.items():
            pass_ms = min(time_passes_ms(work, replace(timing, warmup=1, repeats=_FEW_PASSES)))
            if pass_ms > config.most_ms:
                raise BrokenNetwork(f"a pass in {name} takes {pass_ms:.4g} ms, more than {config.most_ms:g} ms")
            work.at_a_time = max(1, math.ceil(config.least_ms / pass_ms))
        self._visits: dict[str, list[Measurement]] = {name: [] for name in config.runtimes}
        self.seconds += time.perf_counter() - begin

    def visit(self, references: Mapping[str, NetworkWorkload]) -> None:
        """Some passes in every runtime, with those of the reference in between."""
        begin = time.perf_counter()
        for name, work in self._workloads.items():
            self._visits[name].append(measure(work, references[name], self._timing))
        self.seconds += time.perf_counter() - begin

    def row(self, reference_ms: Mapping[str, float]) -> dict[str, Any]:
        """Costs and latencies after all visits; ``reference_ms`` is what the reference took at first."""
        measured: dict[str, dict[str, Any]] = {}
        for name, visits in self._visits.items():
            times = self._workloads[name].at_a_time
            relative = np.array([visit.relative for visit in visits]) / times
            measured[name] = {
                "corrected_ms": float(np.median(relative)) * reference_ms[name],
                "raw_ms": _mean([visit.raw_ms for visit in visits]) / times,
                "std_ms": _mean([visit.std_ms for visit in visits]) / times,
                "mad_ms": _mean([visit.mad_ms for visit in visits]) / times,
                "reference_ms": float(np.median([visit.reference_ms for visit in visits])),
                "relative": float(np.median(relative)),
                "visits": relative.tolist(),
                "at_a_time": times,
            }
            if states := [visit.clock_state for visit in visits if visit.clock_state]:
                measured[name]["clock_states"] = states
        return {**self._costs, "measured": measured}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def check_outputs(outputs: Mapping[str, Sequence[NDArray[np.float32]]]) -> None:
    """Insist that outputs are finite, and equal in all runtimes.

    Raises:
        BrokenNetwork: they are not.
    """
    reference = next(iter(outputs))
    for name, found in outputs.items():
        for output, first in zip(found, outputs[reference], strict=True):
            if not np.isfinite(output).all():
                raise BrokenNetwork(f"the output in {name} is not finite")
            if output.shape != first.shape or np.abs(output - first).max() > _AGREE * np.abs(first).max():
                raise BrokenNetwork(f"the output in {name} differs from that in {reference}")
