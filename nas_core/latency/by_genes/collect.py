"""Measurement of many architectures of a space into a file, which a later run continues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, NasExtError
from nas_core.files import read_jsonl
from nas_core.jobs import Failure
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement, TimingConfig, measure, prepared, time_passes_ms
from nas_core.locks import only_process
from nas_core.models.workload import Workload
from nas_core.progress import counted
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True)
class Measured:
    """Measurement of an architecture and its machine."""

    machine: dict[str, Any]
    """As of :func:`nas_core.latency.machine.describe_machine`."""
    reference_ms: float
    """Time of the reference there before."""
    measurement: Measurement


BuildWorkload = Callable[[Architecture], Workload]
MeasureMany = Callable[[Sequence[Architecture]], Generator[Measured | Failure, None, None]]

_MOST_DRAWS = 50
"""Draws for each architecture, after which a space counts as exhausted."""


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
    """Measure architectures until the file has ``samples`` of them.

    The architectures are the smallest, the largest, and then random ones (each gene uniform) in an order that depends
    on the seed alone. A second call with the same settings, or with more samples, measures only what is missing.

    Args:
        build: makes the workload of an architecture.
        workload: description of the workload as plain types; part of the settings of the file.
        progress: report on stderr; None: a bar on a terminal, a line a minute elsewhere.
        measure_many: measures architectures elsewhere, in order, instead of ``build``; the file then belongs to the
            machine of the first measurement.

    Raises:
        ConfigError: the file has other settings or another machine, another process measures into it, the space holds
            fewer architectures, this machine lacks the device or precision, or a network cannot be measured so.
        DataError: the file is damaged or no such file.
        NasExtError: a measurement elsewhere failed; those before it are kept.
    """
    path = Path(path)
    settings = {"workload": workload, "timing": asdict(timing), "seed": seed}
    machine = describe_machine(timing.checked_here().device, timing.threads) if measure_many is None else {}
    planned = planned_architectures(space, samples, seed)
    lock = path.with_name(f"{path.name}.lock")
    with only_process(lock, f"is measuring into {path}", "give another file on another machine"):
        dataset = None
        if path.exists() and read_jsonl(path):
            dataset = LatencyDataset.read(path)
            dataset.must_match(space, settings, machine or dataset.machine)
            done = set(dataset.architectures())
            planned = [architecture for architecture in planned if architecture not in done]
            if not planned:
                return dataset
        if measure_many is not None:
            outcomes = measure_many(planned)
        else:
            reference = prepared(build(reference_architecture(space)), timing)
            if dataset is None:
                state_ms = float(np.median(time_passes_ms(reference, timing)))
                dataset = LatencyDataset.begin(path, space, settings, machine, state_ms)
            begun_ms = dataset.reference_ms
            outcomes = (Measured(machine, begun_ms, measure(build(genes), reference, timing)) for genes in planned)
        with closing(outcomes), counted("measuring", len(planned), "architecture", progress) as advance:
            for architecture, outcome in zip(planned, outcomes, strict=True):
                if isinstance(outcome, Failure):
                    raise NasExtError(f"{architecture.key} was not measured: {outcome.reason}; run it again to go on")
                if dataset is None:
                    dataset = LatencyDataset.begin(path, space, settings, outcome.machine, outcome.reference_ms)
                dataset.must_match(space, settings, outcome.machine)
                dataset.append(architecture, outcome.measurement)
                advance(1)
    assert dataset is not None  # at least one was planned
    return dataset


def planned_architectures(space: SearchSpace, samples: int, seed: int) -> list[Architecture]:
    """Return the first ``samples`` different architectures of the seed's list: smallest, largest, random ones.

    Raises:
        ConfigError: 50 draws for each found fewer different ones.
    """
    if samples < 1:
        raise ConfigError(f"{samples} samples were asked for, expected at least 1")
    rng = np.random.default_rng(seed)
    chosen = dict.fromkeys([space.smallest(), space.largest()])
    draws = 0
    while len(chosen) < samples:
        if draws == _MOST_DRAWS * samples:
            raise ConfigError(
                f"{draws} draws from space {space.name!r} ({space.cardinality()} architectures) found {len(chosen)}"
                f" different ones, {samples} were asked for: ask for fewer"
            )
        chosen[space.sample(rng)] = None
        draws += 1
    return list(chosen)[:samples]


def reference_architecture(space: SearchSpace) -> Architecture:
    """Return the architecture of the reference workload: the lower middle option of every choice."""
    row = []
    for choice in space.choices:
        for options in choice.options:
            by_size = np.argsort([choice.code(option) for option in options], kind="stable")
            row.append(int(by_size[(len(options) - 1) // 2]))
    return space.architecture(space.slots.canonical(np.array([row], np.int16))[0])
