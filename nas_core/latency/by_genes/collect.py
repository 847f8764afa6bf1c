"""Measure many architectures of a space into a file, and go on where an earlier run stopped."""

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
from nas_core.latency.protocol import Measurement, measure, prepared, time_passes_ms
from nas_core.latency.timing import TimingConfig
from nas_core.locks import only_process
from nas_core.models.workload import Workload
from nas_core.progress import counted
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True)
class Measured:
    """One architecture, with the machine it was measured on."""

    machine: dict[str, Any]
    """The machine, as :func:`nas_core.latency.machine.describe_machine` describes it."""
    reference_ms: float
    """What the reference took there before."""
    measurement: Measurement


BuildWorkload = Callable[[Architecture], Workload]
MeasureMany = Callable[[Sequence[Architecture]], Generator[Measured | Failure, None, None]]

_MOST_DRAWS = 50
"""Draws per architecture asked for, after which a space counts as exhausted."""


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
    """Bring the file up to ``samples`` measured architectures.

    The architectures are the smallest, the largest, and then random ones (each gene uniform) in an order that depends
    on the seed alone: a second call with the same settings measures only what is missing, also with more samples.

    Args:
        build: gives the workload of an architecture.
        workload: what is measured, as plain types; part of the settings that have to be the same to go on.
        progress: whether to report on stderr; None shows a bar on a terminal, and a line a minute elsewhere.
        measure_many: measures architectures elsewhere, in order; the file then belongs to the kind of machine that the
            first one was measured on, and ``build`` is not used.

    Raises:
        ConfigError: the file was begun with other settings or on another machine, another process measures into it, or
            the space holds fewer architectures; this machine has no such device or precision, or a network cannot be
            measured in that way.
        DataError: the file is damaged or something else.
        NasExtError: a measurement elsewhere failed; those before it are kept.
    """
    settings = {"workload": workload, "timing": asdict(timing), "seed": seed}
    machine = describe_machine(timing.checked_here().device, timing.threads) if measure_many is None else {}
    planned = planned_architectures(space, samples, seed)
    lock = Path(path).with_name(f"{Path(path).name}.lock")
    with only_process(lock, f"is measuring into {path}", "give another file on another machine"):
        return _collected(Path(path), space, build, planned, timing, settings, machine, progress, measure_many)


def _collected(
    path: Path,
    space: SearchSpace,
    build: BuildWorkload,
    planned: list[Architecture],
    timing: TimingConfig,
    settings: dict[str, Any],
    machine: dict[str, Any],
    progress: bool | None,
    measure_many: MeasureMany | None,
) -> LatencyDataset:
    """Do what :func:`collect` does, in the only process that writes to the file."""
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
        outcomes = _measured_here(planned, build, reference, timing, dataset)
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


def _measured_here(
    planned: Sequence[Architecture],
    build: BuildWorkload,
    reference: Workload,
    timing: TimingConfig,
    dataset: LatencyDataset,
) -> Generator[Measured, None, None]:
    for architecture in planned:
        yield Measured(dataset.machine, dataset.reference_ms, measure(build(architecture), reference, timing))


def planned_architectures(space: SearchSpace, samples: int, seed: int) -> list[Architecture]:
    """The first ``samples`` different architectures of the seed's list: smallest, largest, random ones.

    Raises:
        ConfigError: so many different ones were not found in 50 draws for each.
    """
    if samples < 1:
        raise ConfigError(f"{samples} samples were asked for, expected at least 1")
    rng = np.random.default_rng(seed)
    found = dict.fromkeys([space.smallest(), space.largest()])
    draws = 0
    while len(found) < samples:
        if draws == _MOST_DRAWS * samples:
            raise ConfigError(
                f"{draws} draws from space {space.name!r} ({space.cardinality()} architectures) found {len(found)}"
                f" different ones, {samples} were asked for: ask for fewer"
            )
        found[space.sample(rng)] = None
        draws += 1
    return list(found)[:samples]


def reference_architecture(space: SearchSpace) -> Architecture:
    """What the machine's state is measured with: the lower middle option of every choice."""
    slots = space.slots
    row = []
    for choice in space.choices:
        for options in choice.options:
            by_size = np.argsort([choice.code(option) for option in options], kind="stable")
            row.append(int(by_size[(len(options) - 1) // 2]))
    return space.architecture(slots.canonical(np.array([row], np.int16))[0])
