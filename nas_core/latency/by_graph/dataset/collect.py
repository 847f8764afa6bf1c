"""Latency measurement of random networks of several families."""

from __future__ import annotations

import json
import logging
import math
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import Range, check_fields
from nas_core.device import pinned_threads
from nas_core.errors import ConfigError, NasExtError
from nas_core.files.writing import make_folder
from nas_core.graph.onnx.reader import read_onnx
from nas_core.latency.by_graph.dataset.export import OPSET, calibrate, exported, without_weights
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.dataset.runtimes import RUNTIMES, NetworkWorkload, check_runtimes, workload
from nas_core.latency.by_graph.families.family import Family, Settings
from nas_core.latency.by_graph.families.images import GOOGLENET
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import Measurement, TimingConfig, measure, time_passes_ms
from nas_core.locks import file_lock
from nas_core.optional import require
from nas_core.progress import progress_bar

# settings of the reference network, a GoogLeNet with small and large layers
_REFERENCE = {
    "resolution": 192,
    "stem": [32, 32, 96],
    "large_kernel": 5,
    "stages": [[[32, 48, 64, 8, 16, 16]] * 2, [[96, 48, 104, 8, 24, 32]] * 2, [[128, 80, 160, 16, 64, 64]]],
}
_FIRST_PASSES = 20
_MAX_ERRORS = 30
_MAX_DRAWS = 50
_TOLERANCE = 0.02  # maximum relative difference between the outputs of two runtimes
_FEW_PASSES = 3

_RANGES = {
    **dict.fromkeys(("visits", "group_size", "max_batch"), Range(1)),
    **dict.fromkeys(("min_ms", "max_ms"), Range(0, exclude=(0,))),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class NetworkSetConfig:
    """Settings of a data set of measured networks, in addition to a :class:`TimingConfig`."""

    runtimes: tuple[str, ...] = RUNTIMES
    """Runtimes to measure: ``onnxruntime``, ``torch``, or both."""
    seed: int = 0
    """Seed of the random networks."""
    visits: int = 4
    """Measurements of each network, some seconds apart; four halve the noise."""
    group_size: int = 8
    """Networks measured in turn; if the process is killed, they are measured again."""
    min_ms: float = 5.0
    """Minimum time in ms between two passes of the reference network; a faster network runs several times."""
    max_ms: float = 250.0
    """Maximum latency in ms in any runtime; slower networks are skipped."""
    max_batch: int = 1
    """Maximum batch size; each network has a random one."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)


class PlannedNetwork(NamedTuple):
    """Random network to be measured."""

    name: str
    """Family and number, such as vgg_0007."""
    family: Family
    settings: Settings


def planned_networks(families: Sequence[Family], count: int, seed: int, max_batch: int = 1) -> list[PlannedNetwork]:
    """Return ``count`` distinct random networks for a seed, from each family in turn.

    Each has a random batch size up to ``max_batch``, unless its family has a fixed one.
    """
    if count < 1:
        raise ConfigError(f"count is {count}, expected at least 1")
    generators = [_networks(family, seed, max_batch) for family in families]
    return [next(generators[index % len(generators)]) for index in range(count)]


def _networks(family: Family, seed: int, max_batch: int) -> Iterator[PlannedNetwork]:
    rng = np.random.default_rng([seed, zlib.crc32(family.name.encode())])
    seen: set[str] = set()
    while True:
        for _ in range(_MAX_DRAWS):
            settings = dict(family.sample(rng))
            if max_batch > 1 and family.batched:
                settings["batch"] = int(rng.integers(1, max_batch + 1))
            text = json.dumps(settings, sort_keys=True)
            if text not in seen:
                break
        else:
            raise ConfigError(
                f"family {family.name!r} gave no new network in {_MAX_DRAWS} draws after {len(seen)}; lower the count"
            )
        yield PlannedNetwork(f"{family.name}_{len(seen):04d}", family, json.loads(text))
        seen.add(text)


def collect_networks(
    path: str | Path,
    families: Sequence[Family],
    count: int,
    timing: TimingConfig,
    config: NetworkSetConfig | None = None,
    progress: bool | None = None,
) -> NetworkSet:
    """Measure random networks until the folder has ``count``, including skipped ones. A second call continues.

    Raises:
        ConfigError: the folder has other settings or another machine, or another process writes to it.
        NasExtError: no network can be measured.
    """
    config, path = config or NetworkSetConfig(), Path(path)
    versions = check_runtimes(config.runtimes, timing.checked_here())
    require("onnx", "exporting networks", "onnx")
    settings = {
        **asdict(config),
        "runtimes": list(config.runtimes),
        "families": [family.name for family in families],
        "timing": asdict(timing),
        "opset": OPSET,
        "reference": {"family": GOOGLENET.name, **_REFERENCE},
    }
    machine = {**describe_machine(timing.device, timing.threads), **versions}
    planned = planned_networks(families, count, config.seed, config.max_batch)
    with dataset_lock(path):
        dataset = NetworkSet.resume(path, settings, machine)
        if dataset is not None:
            measured = {row["name"] for row in dataset.rows}
            planned = [network for network in planned if network.name not in measured]
            if not planned:
                return dataset
        make_folder(path / "onnx")
        references = _references(config, timing)
        if dataset is None:
            first_timing = replace(timing, repeats=max(timing.repeats, _FIRST_PASSES))
            state = {name: float(np.median(time_passes_ms(work, first_timing))) for name, work in references.items()}
            dataset = NetworkSet.create(path, settings, machine, state)
        with progress_bar("measuring", len(planned), "network", progress) as advance:
            for network, outcome in _measure_groups(planned, references, config, timing):
                row = {**network._asdict(), "family": network.family.name, "time": time.time()}
                if isinstance(outcome, str):
                    dataset.append({**row, "error": outcome})
                else:
                    row |= {"seconds": outcome.seconds, **outcome.row(dataset.reference_ms)}
                    dataset.append(row, outcome.content)
                advance(1)
                if len(dataset.rows) >= _MAX_ERRORS and all("error" in row for row in dataset.rows[-_MAX_ERRORS:]):
                    raise NasExtError(
                        f"the last {_MAX_ERRORS} networks were skipped, the last one because of:"
                        f" {dataset.rows[-1]['error']}; remove the cause, and give another folder than {path}"
                    )
    return dataset


def dataset_lock(folder: Path) -> AbstractContextManager[int]:
    """Lock a folder against measurements by other processes."""
    lock = folder / "dataset.lock"
    return file_lock(lock, f"is measuring the networks of {folder}", "give another folder on another machine")


def _references(config: NetworkSetConfig, timing: TimingConfig) -> dict[str, NetworkWorkload]:
    network, inputs = GOOGLENET.network(_REFERENCE)
    calibrate(network, inputs)
    content = exported(network, inputs) if "onnxruntime" in config.runtimes else b""
    return {name: workload(name, network, inputs, content, timing) for name in config.runtimes}


class LoadedNetwork:
    """Network that is loaded in every runtime; each call of :meth:`visit` measures it.

    Raises:
        NasExtError: the network is too slow, or an output is not finite or differs between runtimes.
    """

    def __init__(self, planned: PlannedNetwork, config: NetworkSetConfig, timing: TimingConfig) -> None:
        self._timing = timing
        start_time = time.perf_counter()
        with pinned_threads(timing.threads):
            network, inputs = planned.family.network(planned.settings)
            clock = time.thread_time if timing.clock == "cpu" else time.perf_counter
            pass_start_time = clock()
            outputs = calibrate(network, inputs)
            first_ms = (clock() - pass_start_time) * 1e3
            if first_ms > 4 * config.max_ms:  # before anything that takes still longer
                raise NasExtError(f"the first pass takes {first_ms:.0f} ms, more than 4 x max_ms = {config.max_ms:g}")
            if not all(output.isfinite().all() for output in outputs):
                raise NasExtError("the network's output has NaN or infinite values")
            content = exported(network, inputs)
        self.content = without_weights(content)
        network_graph = read_onnx(self.content, warn=False)
        self._costs = {
            "nodes": len(network_graph.graph),
            "flops_g": network_graph.flops_g,
            "params_m": network_graph.params_m,
            "access_m": network_graph.access_m,
            "unknown": dict(network_graph.unknown),
        }
        self._workloads = {name: workload(name, network, inputs, content, timing) for name in config.runtimes}
        _check_outputs({name: work.outputs() for name, work in self._workloads.items()})
        for name, work in self._workloads.items():
            pass_ms = min(time_passes_ms(work, replace(timing, warmup=1, repeats=_FEW_PASSES)))
            if pass_ms > config.max_ms:
                raise NasExtError(f"a pass in {name} takes {pass_ms:.4g} ms, more than max_ms = {config.max_ms:g}")
            work.at_a_time = max(1, math.ceil(config.min_ms / pass_ms))
        self._visits: dict[str, list[Measurement]] = {name: [] for name in config.runtimes}
        self.seconds = time.perf_counter() - start_time

    def visit(self, references: Mapping[str, NetworkWorkload]) -> None:
        start_time = time.perf_counter()
        for name, work in self._workloads.items():
            self._visits[name].append(measure(work, references[name], self._timing))
        self.seconds += time.perf_counter() - start_time

    def row(self, reference_ms: Mapping[str, float]) -> dict[str, Any]:
        measured: dict[str, dict[str, Any]] = {}
        for name, visits in self._visits.items():
            times = self._workloads[name].at_a_time
            relative = np.array([visit.relative for visit in visits]) / times
            measured[name] = {
                "corrected_ms": float(np.median(relative)) * reference_ms[name],
                **{
                    key: float(np.mean([getattr(visit, key) for visit in visits])) / times
                    for key in ("raw_ms", "std_ms", "mad_ms")
                },
                "reference_ms": float(np.median([visit.reference_ms for visit in visits])),
                "relative": float(np.median(relative)),
                "visits": relative.tolist(),
                "at_a_time": times,
            }
        return {**self._costs, "measured": measured}


def _measure_groups(
    planned: Sequence[PlannedNetwork],
    references: Mapping[str, NetworkWorkload],
    config: NetworkSetConfig,
    timing: TimingConfig,
) -> Iterator[tuple[PlannedNetwork, LoadedNetwork | str]]:
    """Measure networks in groups of ``config.group_size``; yield each with its measurements or a reason for none."""
    for first in range(0, len(planned), config.group_size):
        group = planned[first : first + config.group_size]
        outcomes: dict[str, LoadedNetwork | str] = {}
        for number in range(config.visits + 1):
            for network in group:
                try:
                    if number == 0:
                        outcomes[network.name] = LoadedNetwork(network, config, timing)
                    elif not isinstance(loaded := outcomes[network.name], str):
                        loaded.visit(references)
                except Exception as error:  # torch, the exporter and onnxruntime may raise anything
                    text = " ".join(str(error).split())[:300]
                    outcomes[network.name] = (
                        text if isinstance(error, NasExtError) else f"{type(error).__name__}: {text}"
                    )
        yield from ((network, outcomes[network.name]) for network in group)


def _check_outputs(outputs: Mapping[str, Sequence[NDArray[np.float32]]]) -> None:
    reference = next(iter(outputs))
    for name, arrays in outputs.items():
        for output, first in zip(arrays, outputs[reference], strict=True):
            if not np.isfinite(output).all():
                raise NasExtError(f"the output in {name} is not finite")
            if output.shape != first.shape or np.abs(output - first).max() > _TOLERANCE * np.abs(first).max():
                raise NasExtError(f"the output in {name} differs from that in {reference}")
