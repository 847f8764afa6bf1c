"""Latency measurement of architectures of a search space, in this process or in submitit jobs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.files.journal import read_jsonl
from nas_core.jobs import Failure, JobPool, JobsConfig
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement, TimingConfig, measure, time_passes_ms
from nas_core.locks import file_lock
from nas_core.models.kind import kind_of
from nas_core.models.workload import Workload
from nas_core.progress import progress_bar
from nas_core.space import Architecture, SearchSpace
from nas_core.space.files import space_from_dict, space_to_dict


@dataclass(frozen=True)
class Measured:
    """Measurement of an architecture, and the machine on which it was made."""

    machine: dict[str, Any]
    reference_ms: float
    measurement: Measurement


BuildWorkload = Callable[[Architecture], Workload]
MeasureMany = Callable[[Sequence[Architecture]], Generator[Measured | Failure, None, None]]

_MAX_DRAWS = 50


def collect(
    path: str | Path,
    space: SearchSpace,
    build: BuildWorkload,
    samples: int,
    timing: TimingConfig,
    workload: dict[str, Any],
    seed: int = 0,
    progress: bool | None = None,
    measure_many: MeasureMany | None = None,
) -> LatencyDataset:
    """Measure the latency of architectures until the file has ``samples`` of them. A second call continues.

    The smallest and the largest architecture come first, then random ones. The order depends only on the seed.

    Args:
        build: function that returns the network of an architecture with its inputs.
        workload: description of the inputs, saved in the file.
        progress: True: a bar; False: nothing; None: a bar on a terminal, otherwise one line per minute.
        measure_many: function that measures in other processes; None: measure in this process.

    Raises:
        ConfigError: the file has other settings or another machine, or another process writes to it.
        NasExtError: a measurement in another process failed.
    """
    path = Path(path)
    settings = {"workload": workload, "timing": asdict(timing), "seed": seed}
    machine = describe_machine(timing.checked_here().device, timing.threads) if measure_many is None else {}
    planned = planned_architectures(space, samples, seed)
    lock = path.with_name(f"{path.name}.lock")
    with file_lock(lock, f"is measuring into {path}", "give another file on another machine"):
        dataset = None
        if path.exists() and read_jsonl(path):
            dataset = LatencyDataset.read(path)
            dataset.check_match(space, settings, machine or dataset.machine)
            measured = set(dataset.architectures())
            planned = [architecture for architecture in planned if architecture not in measured]
            if not planned:
                return dataset
        outcomes = measure_many(planned) if measure_many else _measure_locally(planned, space, build, timing, machine)
        with closing(outcomes), progress_bar("measuring", len(planned), "architecture", progress) as advance:
            for architecture, outcome in zip(planned, outcomes, strict=True):
                if isinstance(outcome, Failure):
                    raise NasExtError(
                        f"measuring {architecture.key} failed: {outcome.reason}; run the same command to continue"
                    )
                if dataset is None:
                    dataset = LatencyDataset.create(path, space, settings, outcome.machine, outcome.reference_ms)
                dataset.check_match(space, settings, outcome.machine)
                dataset.append(architecture, outcome.measurement)
                advance(1)
    assert dataset is not None  # at least one was planned
    return dataset


def _measure_locally(
    planned: Sequence[Architecture],
    space: SearchSpace,
    build: BuildWorkload,
    timing: TimingConfig,
    machine: dict[str, Any],
) -> Generator[Measured, None, None]:
    reference = build(reference_architecture(space))
    state_ms = float(np.median(time_passes_ms(reference, timing)))
    for architecture in planned:
        yield Measured(machine, state_ms, measure(build(architecture), reference, timing))


def planned_architectures(space: SearchSpace, samples: int, seed: int) -> list[Architecture]:
    """Return distinct architectures: the smallest, the largest, then random ones for a seed."""
    if samples < 1:
        raise ConfigError(f"samples is {samples}, expected at least 1")
    rng = np.random.default_rng(seed)
    architectures = dict.fromkeys([space.smallest(), space.largest()])
    draws = 0
    while len(architectures) < samples:
        if draws == _MAX_DRAWS * samples:
            raise ConfigError(
                f"{draws} draws from space {space.name!r} ({space.cardinality()} architectures) gave only"
                f" {len(architectures)} different ones, but samples is {samples}; give fewer samples"
            )
        architectures[space.sample(rng)] = None
        draws += 1
    return list(architectures)[:samples]


def reference_architecture(space: SearchSpace) -> Architecture:
    """Return the architecture of the reference workload: the (lower) median option of every choice."""
    row = []
    for choice in space.choices:
        for options in choice.options:
            by_size = np.argsort([choice.code(option) for option in options], kind="stable")
            row.append(int(by_size[(len(options) - 1) // 2]))
    return space.architecture(space.slots.canonical(np.array([row], np.int16))[0])


class SubmititMeasurements:
    """Latency measurement in submitit jobs, for the argument ``measure_many`` of :func:`collect`.

    Cluster ``local`` runs one job at a time. On Slurm, ``jobs.slurm={"exclusive": ""}`` gives each job a machine.

    Args:
        workload: settings of the network inputs, a dataclass of the space's type of network.
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
        genes = [architecture.to_dict() for architecture in architectures]
        for outcome in self._pool.map(open_workload, self._arguments, genes):
            if isinstance(outcome, Failure):
                yield outcome
            else:
                yield Measured(outcome["machine"], outcome["reference_ms"], Measurement(**outcome["measurement"]))


def open_workload(
    space: Mapping[str, Any], workload: Mapping[str, Any], timing: Mapping[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that measures an architecture in a job, given its genes.

    Args:
        workload: settings of the network inputs by name.
    """
    search_space = space_from_dict(space, "job")
    kind, timing_config = kind_of(search_space), TimingConfig(**timing).checked_here()
    config = kind.config(workload)

    def build(architecture: Architecture) -> Workload:
        return kind.workload(search_space, architecture, config, timing_config.device)

    reference = build(reference_architecture(search_space))
    conditions = {
        "machine": describe_machine(timing_config.device, timing_config.threads),
        "reference_ms": float(np.median(time_passes_ms(reference, timing_config))),
    }
    return lambda genes: {
        **conditions,
        "measurement": asdict(measure(build(Architecture(genes)), reference, timing_config)),
    }
