"""Repeatability of latencies by wall time and by CUDA events.

``python -m benchmarks latency_clock [--device cuda]``; a few minutes on a GPU. Each clock measures the same
architectures twice. Results are the coefficient of variation of an architecture's passes (median over architectures),
the change of latencies between both collections, Kendall's tau between them, and the time of a pass. A CPU has one
clock; its figures show how busy the machine was. The same command resumes.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kendalltau

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import measure_rows
from nas_core.errors import ConfigError
from nas_core.latency import TimingConfig, measure
from nas_core.latency.by_genes.collect import planned_architectures, reference_architecture
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement
from nas_core.models.kind import kind_of
from nas_core.precision import PRECISIONS
from nas_core.space import SearchSpace, get_space

RESULTS = Path(__file__).parents[1] / "results"
SPACES = {"hat_small": {"source_vocab": 8000, "target_vocab": 8000}, "mformer_cifar10_small": {"batch": 1}}
"""Search space -> settings of its workload, for batch size 1."""
CLOCKS = ("wall", "device")
COLLECTIONS = 2


def timing_of(clock: str, device: str, precision: str, repeats: int) -> TimingConfig:
    return TimingConfig(warmup=3, repeats=repeats, clock=clock, device=device, precision=precision)


def collect(space: SearchSpace, workload: Any, timing: TimingConfig, count: int) -> list[Measurement]:
    kind = kind_of(space)
    reference = kind.workload(space, reference_architecture(space), workload, timing.device)
    return [
        measure(kind.workload(space, architecture, workload, timing.device), reference, timing)
        for architecture in planned_architectures(space, count, seed=0)
    ]


def compare_collections(first: list[Measurement], second: list[Measurement]) -> dict[str, Any]:
    """Compare two collections of the same architectures, in percent."""
    raw, corrected = (
        [np.array([getattr(measurement, name) for measurement in measurements]) for measurements in (first, second)]
        for name in ("raw_ms", "relative")
    )
    variation = [measurement.std_ms / measurement.raw_ms for measurement in (*first, *second)]
    return {
        "pass_ms": round(float(np.median(raw[0])), 4),
        "spread_of_passes_percent": round(100 * float(np.median(variation)), 2),
        "moved_percent": round(100 * float(np.median(np.abs(raw[1] / raw[0] - 1))), 2),
        "moved_corrected_percent": round(100 * float(np.median(np.abs(corrected[1] / corrected[0] - 1))), 2),
        "tau": round(float(kendalltau(raw[0], raw[1]).statistic), 3),
        "tau_corrected": round(float(kendalltau(corrected[0], corrected[1]).statistic), 3),
    }


def measure_clock(name: str, precision: str, clock: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one clock, or the reason why it is not available."""
    try:
        timing = timing_of(clock, options.device, precision, options.repeats).checked_here()
        space = get_space(name)
        workload = kind_of(space).config(SPACES[name])
        collections = [collect(space, workload, timing, options.architectures) for _ in range(COLLECTIONS)]
    except ConfigError as error:
        return {"absent": str(error)}
    return compare_collections(*collections)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--architectures", type=int, default=20, help="architectures per search space")
    parser.add_argument("--repeats", type=int, default=6, help="timed passes per architecture")
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS))
    parser.add_argument("--spaces", nargs="+", default=list(SPACES))
    parser.add_argument("--out", type=Path, help="default: in results/cuda on CUDA, none on the CPU")
    options = parser.parse_args(argv)
    cuda = torch.device(options.device).type == "cuda"
    out = options.out or (RESULTS / "cuda" / "latency_clock.json" if cuda else None)
    machine = describe_machine(options.device, 1)
    settings = {"architectures": options.architectures, "repeats": options.repeats, "machine": machine}
    cases = list(itertools.product(options.spaces, options.precisions, CLOCKS if cuda else CLOCKS[:1]))
    keys = [dict(zip(("space", "precision", "clock"), case, strict=True)) for case in cases]
    rows = measure_rows(out, keys, settings, lambda index: measure_clock(*cases[index], options))
    if out is not None:
        write_result(out, {**settings, "rows": rows}, command(__file__, argv))


if __name__ == "__main__":
    main()
