"""Published latencies as the folder of a data set: graphs are made network by network, and a second call goes on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, NasExtError
from nas_core.files import read_jsonl, real_path
from nas_core.jobs import Failure
from nas_core.latency.by_graph.dataset.collect import alone
from nas_core.latency.by_graph.dataset.export import OPSET
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet
from nas_core.latency.by_graph.published.shared import MadeGraphs
from nas_core.latency.by_graph.published.source import NetworkSource
from nas_core.latency.by_graph.published.table import PublishedNetwork, PublishedTable
from nas_core.optional import require
from nas_core.progress import counted
from nas_core.workers import WorkerPool

RUNTIME = "torch"
"""The runtime that published latencies count as."""
_UNKNOWN_FAMILY = "unknown"
"""Family of a network over which its process was lost."""
_PER_WORKER = 100
"""Networks after which a process is replaced, with all that torch keeps of what it traced."""


@dataclass(frozen=True, kw_only=True)
class PublishedConfig:
    """Which networks of a table are taken, and the limits of each one's export."""

    seed: int = 0
    """Seed of the order, which is a random one: the last of each family are held out, and tables are often sorted. It
    is the same on all devices, so that the first networks of one are nearly those of another."""
    most_seconds: float = 300.0
    """Seconds after which the export of a network is given up."""
    most_memory_gb: float = 8.0
    """Memory that the exporting process may take."""
    max_nodes: int = 5000
    """Nodes of a graph; a network with more is skipped."""

    def __post_init__(self) -> None:
        least = {"seed": 0, "most_seconds": 1, "most_memory_gb": 1, "max_nodes": 1}
        check_fields(self, "published networks", {name: Range(number) for name, number in least.items()})


def collect_published(
    path: str | Path,
    table: PublishedTable,
    source: NetworkSource,
    device: str | None = None,
    count: int | None = None,
    config: PublishedConfig | None = None,
    progress: bool | None = None,
    graphs: str | Path | None = None,
) -> NetworkSet:
    """Bring the folder up to ``count`` networks of a device, skipped ones among them; None: to all of them.

    A second call makes only what is missing; of a network that was skipped, remove the line to have it tried again.
    Rows have what :class:`NetworkSet` tells, measured in runtime ``torch`` with the milliseconds as they were
    published, and ``published`` (the costs in the table) and ``source`` (name and version of what built it).

    Args:
        device: one of the table's; None: the only one.
        progress: whether to report on stderr; None shows a bar on a terminal, and a line a minute elsewhere.
        graphs: a folder that was filled for another device with the same release of the source: of networks that it
            has at the same image size the graphs are taken, with the batch of this device.

    Raises:
        UnknownChoiceError: no such device. ConfigError: the folder was begun with other networks, the table has fewer
        networks, another process fills the folder, or ``graphs`` holds networks of something else. DataError: a folder
        is damaged or something else. NasExtError: it cannot be written, or no network can be exported.
        MissingHostError: onnx is not installed.
    """
    config = config or PublishedConfig()
    require("onnx", "exporting networks", "onnx")
    name, rows = table.chosen(device)
    if count is not None and not 1 <= count <= len(rows):
        raise ConfigError(f"{count} networks were asked for; {table.path} has {len(rows)} of {name}")
    planned = sorted(rows, key=lambda network: _place(network, config.seed))[:count]
    settings = {"source": source.name, "table": table.fingerprint(name), "seed": config.seed, "opset": OPSET}
    machine = {"device_name": name, "measured_by": f"as published by {source.name}"}
    folder, made = Path(path), None if graphs is None else MadeGraphs(graphs, source)
    with alone(folder):
        found = _begun(folder, settings, machine)
        waiting = _missing(found, planned)
        with counted("exporting", len(waiting), "network", progress) as advance:
            for first in range(0, len(waiting), _PER_WORKER):
                for _ in _exported(waiting[first : first + _PER_WORKER], found, source, config, made):
                    advance(1)
    if all("error" in row for row in found.rows):
        raise NasExtError(f"none of {len(found.rows)} networks can be exported; the last: {found.rows[-1]['error']}")
    return found


def _place(network: PublishedNetwork, seed: int) -> tuple[str, int]:
    """What networks are ordered by: a number that follows from name, image size and seed."""
    text = f"{seed} {network.model} {network.img_size}"
    return hashlib.sha256(text.encode()).hexdigest(), network.batch_size


def _begun(folder: Path, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> NetworkSet:
    journal = folder / JOURNAL
    if not (journal.exists() and read_jsonl(journal)):
        return NetworkSet.begin(folder, settings, machine, {RUNTIME: 1.0})
    found = NetworkSet.read(folder)
    found.must_match(settings, machine)
    return found


def _missing(found: NetworkSet, planned: Sequence[PublishedNetwork]) -> list[PublishedNetwork]:
    done = {row["name"] for row in found.rows}
    return [network for network in planned if network.name not in done]


def _exported(
    planned: Sequence[PublishedNetwork],
    found: NetworkSet,
    source: NetworkSource,
    config: PublishedConfig,
    made: MadeGraphs | None,
) -> Iterator[PublishedNetwork]:
    """Add a row for each network, as soon as its graph is there."""
    arguments = {
        "folder": str(real_path(found.path / "onnx")),
        "most_seconds": config.most_seconds,
        "most_memory_gb": config.most_memory_gb,
        "max_nodes": config.max_nodes,
    }
    items = [
        {"name": one.name, **one.settings, "params_m": one.params_m, "graph": _graph(one, made)} for one in planned
    ]
    with WorkerPool(source.opener, [arguments], ["this machine"]) as pool:
        for network, outcome in zip(planned, pool.map(items), strict=True):
            found.append(_row(network, outcome, source))
            yield network


def _graph(network: PublishedNetwork, made: MadeGraphs | None) -> str | None:
    path = made.of(network) if made else None
    return None if path is None else str(real_path(path))


def _row(network: PublishedNetwork, outcome: Mapping[str, Any] | Failure, source: NetworkSource) -> dict[str, Any]:
    made = {"family": _UNKNOWN_FAMILY, "error": outcome.reason} if isinstance(outcome, Failure) else dict(outcome)
    by = f"{source.name} {source.version}"
    if made.get("error"):
        made["error"] = f"{made['error']} ({by})"
    row = {"name": network.name, "settings": network.settings, "time": time.time(), "source": by}
    row |= {"published": network.costs, **made}
    return row if "error" in row else {**row, "measured": {RUNTIME: _measured(network.step_ms)}}


def _measured(latency_ms: float) -> dict[str, Any]:
    """The times of one visit, without a reference: nothing is known of drift and noise."""
    return {
        "corrected_ms": latency_ms,
        "raw_ms": latency_ms,
        "std_ms": 0.0,
        "mad_ms": 0.0,
        "reference_ms": 1.0,
        "relative": latency_ms,
        "visits": [latency_ms],
        "at_a_time": 1,
    }
