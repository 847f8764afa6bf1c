"""Build, export and measure the networks of several families, and go on where an earlier run stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import NasExtError
from nas_core.files import make_folder, read_jsonl
from nas_core.latency.by_graph.dataset.export import OPSET, calibrate, exported
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet
from nas_core.latency.by_graph.dataset.plan import PlannedNetwork, planned_networks
from nas_core.latency.by_graph.dataset.runtimes import NetworkWorkload, check_runtimes, workload
from nas_core.latency.by_graph.dataset.visited import BrokenNetwork, NetworkSetConfig, VisitedNetwork
from nas_core.latency.by_graph.families.branches import GOOGLENET
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.machine import describe_machine
from nas_core.latency.protocol import time_passes_ms
from nas_core.latency.timing import TimingConfig
from nas_core.locks import only_process
from nas_core.optional import require
from nas_core.progress import counted

_REFERENCE = {
    "resolution": 192,
    "stem": [32, 32, 96],
    "large_kernel": 5,
    "stages": [[[32, 48, 64, 8, 16, 16]] * 2, [[96, 48, 104, 8, 24, 32]] * 2, [[128, 80, 160, 16, 64, 64]]],
}
"""Settings of the GoogLeNet-like network that tells the machine's state: small and large layers, every kind of memory
access, a few milliseconds."""
_FIRST_PASSES = 20
"""Passes of the reference at the beginning of a folder, at least."""
_MOST_BROKEN = 30
"""Networks skipped one after another, after which it is not the networks that are broken."""


def collect_networks(
    path: str | Path,
    families: Sequence[Family],
    count: int,
    timing: TimingConfig,
    config: NetworkSetConfig | None = None,
    progress: bool | None = None,
) -> NetworkSet:
    """Bring the folder up to ``count`` networks, skipped ones among them.

    A second call with the same settings measures only what is missing, also with a larger count.

    Args:
        progress: whether to report on stderr; None shows a bar on a terminal, and a line a minute elsewhere.

    Raises:
        ConfigError: the folder was begun with other settings or on another machine, another process measures into it,
        or a family has too few networks.
        DataError: it is damaged or something else. NasExtError: it cannot be written, or no network can be measured.
        MissingHostError: onnx or onnxruntime is not installed. UnknownChoiceError: there is no such runtime.
    """
    config = config or NetworkSetConfig()
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
    planned = planned_networks(families, count, config.seed, config.most_batch)
    with alone(Path(path)):
        return _collected(Path(path), planned, settings, machine, timing, config, progress)


def alone(folder: Path) -> AbstractContextManager[int]:
    """No other process measures the networks of the folder in this block.

    Raises:
        ConfigError: one does.
    """
    lock = folder / "dataset.lock"
    return only_process(lock, f"is measuring the networks of {folder}", "give another folder on another machine")


def _collected(
    path: Path,
    planned: list[PlannedNetwork],
    settings: dict[str, Any],
    machine: dict[str, Any],
    timing: TimingConfig,
    config: NetworkSetConfig,
    progress: bool | None,
) -> NetworkSet:
    """Do what :func:`collect_networks` does, in the only process that writes to the folder."""
    journal = path / JOURNAL
    found = NetworkSet.read(path) if journal.exists() and read_jsonl(journal) else None
    if found is not None:
        found.must_match(settings, machine)
        planned = found.missing(planned)
        if not planned:
            return found
    make_folder(path / "onnx")
    reference = references(config, timing)
    if found is None:
        often = replace(timing, repeats=max(timing.repeats, _FIRST_PASSES))
        state = {name: float(np.median(time_passes_ms(work, often))) for name, work in reference.items()}
        found = NetworkSet.begin(path, settings, machine, state)
    with counted("measuring", len(planned), "network", progress) as advance:
        for first in range(0, len(planned), config.together):
            together = planned[first : first + config.together]
            _measure_together(together, found, reference, config, timing)
            advance(len(together))
            _expect_one_that_works(found)
    return found


def references(config: NetworkSetConfig, timing: TimingConfig) -> dict[str, NetworkWorkload]:
    """The network whose passes tell the machine's state, in each runtime."""
    network, inputs = GOOGLENET.network(_REFERENCE)
    calibrate(network, inputs)
    content = exported(network, inputs) if "onnxruntime" in config.runtimes else b""
    return {name: workload(name, network, inputs, content, timing) for name in config.runtimes}


def _measure_together(
    planned: Sequence[PlannedNetwork],
    found: NetworkSet,
    references: Mapping[str, NetworkWorkload],
    config: NetworkSetConfig,
    timing: TimingConfig,
) -> None:
    """Visit some networks in turn, then write their rows in the order of the plan."""
    ready, errors = visited_together(planned, references, config, timing)
    for network in planned:
        row: dict[str, Any] = {**network._asdict(), "family": network.family.name, "time": time.time()}
        if network.name in errors:
            found.append({**row, "error": errors[network.name]})
            continue
        visited = ready[network.name]
        found.append({**row, "seconds": visited.seconds, **visited.row(found.reference_ms)}, visited.content)


def visited_together(
    planned: Sequence[PlannedNetwork],
    references: Mapping[str, NetworkWorkload],
    config: NetworkSetConfig,
    timing: TimingConfig,
) -> tuple[dict[str, VisitedNetwork], dict[str, str]]:
    """By name the networks after all visits, in turn, and why the others cannot be measured."""
    ready: dict[str, VisitedNetwork] = {}
    errors: dict[str, str] = {}

    def attempt(network: PlannedNetwork, visit: bool) -> None:
        try:
            if visit:
                ready[network.name].visit(references)
            else:
                ready[network.name] = VisitedNetwork(network, config, timing)
        except Exception as error:  # torch, the exporter and onnxruntime raise whatever a network makes them raise
            errors[network.name] = _reason(error)

    for number in range(config.visits + 1):
        for network in planned:
            if network.name not in errors:
                attempt(network, visit=number > 0)
    return ready, errors


def _reason(error: Exception) -> str:
    """One line."""
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, BrokenNetwork | NasExtError) else f"{type(error).__name__}: {text}"


def _expect_one_that_works(found: NetworkSet) -> None:
    last = found.rows[-_MOST_BROKEN:]
    if len(last) == _MOST_BROKEN and all("error" in row for row in last):
        raise NasExtError(
            f"{_MOST_BROKEN} networks one after another were skipped, the last one because of: {last[-1]['error']};"
            f" find the reason, and begin another folder than {found.path}"
        )
