"""Measurements in jobs on other machines, each alone on its machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.jobs import Failure, JobPool, JobsConfig
from nas_core.latency.by_genes.collect import Measured, reference_architecture
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement, TimingConfig, measure, prepared, time_passes_ms
from nas_core.models.kind import kind_of
from nas_core.models.workload import Workload
from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict


class SubmititMeasurements:
    """Jobs of submitit as ``measure_many`` of :func:`nas_core.latency.by_genes.collect`.

    On cluster ``local`` one job runs at a time, since two on one machine would disturb each other. Slurm gives each job
    a machine with ``{"exclusive": ""}``.

    Args:
        workload: settings of the workload of the space's network kind.

    Raises:
        MissingHostError: submitit is not installed.
    """

    def __init__(
        self,
        space: SearchSpace,
        workload: Any,
        timing: TimingConfig,
        jobs: JobsConfig,
        folder: Path,
    ) -> None:
        self._pool = JobPool(replace(jobs, jobs=1) if jobs.cluster == "local" else jobs, folder)
        self._arguments = {"space": space_to_dict(space), "workload": asdict(workload), "timing": asdict(timing)}

    def __call__(self, architectures: Sequence[Architecture]) -> Generator[Measured | Failure, None, None]:
        """Yield the measurement of each architecture in order; see :meth:`nas_core.jobs.JobPool.map`."""
        genes = [architecture.to_dict() for architecture in architectures]
        for outcome in self._pool.map(open_workload, self._arguments, genes):
            if isinstance(outcome, Failure):
                yield outcome
            else:
                yield Measured(outcome["machine"], outcome["reference_ms"], Measurement(**outcome["measurement"]))


def open_workload(
    space: Mapping[str, Any], workload: Mapping[str, Any], timing: Mapping[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that measures an architecture, given by its genes, in a job."""
    searched = space_from_dict(space, "job")
    kind, times = kind_of(searched), TimingConfig(**timing).checked_here()
    config = kind.config(workload)

    def build(architecture: Architecture) -> Workload:
        return kind.workload(searched, architecture, config, times.device)

    reference = prepared(build(reference_architecture(searched)), times)
    conditions = {
        "machine": describe_machine(times.device, times.threads),
        "reference_ms": float(np.median(time_passes_ms(reference, times))),
    }
    return lambda genes: {**conditions, "measurement": asdict(measure(build(Architecture(genes)), reference, times))}
