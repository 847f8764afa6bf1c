"""Data set folder from published latencies, with graphs exported here."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, MissingHostError, NasExtError
from nas_core.files.reading import real_path
from nas_core.jobs import Failure, Opener
from nas_core.latency.by_graph.dataset.collect import alone
from nas_core.latency.by_graph.dataset.export import OPSET
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.latency.by_graph.published.table import PublishedNetwork, PublishedTable
from nas_core.optional import require
from nas_core.progress import counted
from nas_core.supernet.host import each_host
from nas_core.workers import WorkerPool

RUNTIME = "torch"
_UNKNOWN_FAMILY = "unknown"
_PER_WORKER = 100
"""Networks per worker process, which limits torch's memory of traced networks."""


class NetworkSource(Protocol):
    """Builder of networks by name: the attribute ``networks`` of a host."""

    name: str
    version: str
    opener: Opener
    """Importable function, called once per worker with the arguments of
    :func:`nas_core.latency.by_graph.published.export.exporting` without ``build``; it returns the result of that."""


def network_source(name: str) -> NetworkSource:
    """Return the source of a host.

    Raises:
        MissingHostError: the host is not installed.
    """
    host = dict(each_host()).get(name)
    if host is None:
        raise MissingHostError(f"no host {name!r} is registered; install nas-ext with 'pip install'")
    if isinstance(host, MissingHostError):
        raise host
    networks: NetworkSource = host.networks
    return networks


@dataclass(frozen=True, kw_only=True)
class PublishedConfig:
    """Selection of networks, and limits of an export."""

    seed: int = 0
    """Seed of the random order, which is nearly the same on all devices."""
    most_seconds: float = 300.0
    """Time limit of the export of one network."""
    most_memory_gb: float = 8.0
    """Memory limit of the exporting process."""
    max_nodes: int = 5000
    """Largest graph; larger networks are skipped."""

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
    """Add networks of a device until the folder has ``count``, including skipped ones; a second call continues.

    Rows are those of :class:`NetworkSet` in runtime ``torch`` with the published milliseconds, plus ``published``
    (costs in the table) and ``source``.

    Args:
        progress: report on stderr; None: a bar on a terminal, else one line per minute.
        graphs: folder of another device and the same release of the source, whose graphs are reused.

    Raises:
        ConfigError: the folder has other networks, or another process writes to it.
        NasExtError: no network can be exported.
    """
    config, folder = config or PublishedConfig(), Path(path)
    require("onnx", "exporting networks", "onnx")
    name, rows = table.chosen(device)
    if count is not None and not 1 <= count <= len(rows):
        raise ConfigError(f"{count} networks were asked for; {table.path} has {len(rows)} of {name}")
    planned = sorted(rows, key=lambda network: _place(network, config.seed))[:count]
    settings = {"source": source.name, "table": table.fingerprint(name), "seed": config.seed, "opset": OPSET}
    machine = {"device_name": name, "measured_by": f"as published by {source.name}"}
    files = {} if graphs is None else _graph_files(graphs, source)
    with alone(folder):
        dataset = NetworkSet.continued(folder, settings, machine)
        if dataset is None:
            dataset = NetworkSet.begin(folder, settings, machine, {RUNTIME: 1.0})
        done = {row["name"] for row in dataset.rows}
        waiting = [network for network in planned if network.name not in done]
        limits = {
            "folder": str(real_path(dataset.path / "onnx")),
            "most_seconds": config.most_seconds,
            "most_memory_gb": config.most_memory_gb,
            "max_nodes": config.max_nodes,
        }
        with counted("exporting", len(waiting), "network", progress) as advance:
            for first in range(0, len(waiting), _PER_WORKER):
                group = waiting[first : first + _PER_WORKER]
                items = [
                    {
                        "name": row.name,
                        **row.settings,
                        "params_m": row.params_m,
                        "graph": files.get(_key(row.settings, row.costs)),
                    }
                    for row in group
                ]
                with WorkerPool(source.opener, [limits], ["this machine"]) as pool:
                    for network, outcome in zip(group, pool.map(items), strict=True):
                        dataset.append(_row(network, outcome, f"{source.name} {source.version}"))
                        advance(1)
    if all("error" in row for row in dataset.rows):
        last = dataset.rows[-1]["error"]
        raise NasExtError(f"none of {len(dataset.rows)} networks can be exported; the last: {last}")
    return dataset


def _place(network: PublishedNetwork, seed: int) -> tuple[str, int]:
    text = f"{seed} {network.model} {network.img_size}"
    return hashlib.sha256(text.encode()).hexdigest(), network.batch_size


def _graph_files(folder: str | Path, source: NetworkSource) -> dict[tuple[Any, ...], str]:
    dataset = NetworkSet.read(folder)
    if dataset.settings.get("source") != source.name:
        raise ConfigError(
            f"{folder} has graphs of {dataset.settings.get('source', 'networks that were measured')}, not of networks"
            f" that {source.name} published; give a folder of --from-{source.name}"
        )
    if dataset.settings.get("opset") != OPSET:
        return {}
    by = f"{source.name} {source.version}"
    return {
        _key(row["settings"], row["published"]): str(real_path(dataset.onnx_path(row["name"])))
        for row in dataset.rows
        if "error" not in row and row["source"] == by
    }


def _key(settings: Mapping[str, Any], costs: Mapping[str, Any]) -> tuple[Any, ...]:
    return settings["model"], settings["img_size"], costs.get("params_m")


def _row(network: PublishedNetwork, outcome: Mapping[str, Any] | Failure, source: str) -> dict[str, Any]:
    result = {"family": _UNKNOWN_FAMILY, "error": outcome.reason} if isinstance(outcome, Failure) else dict(outcome)
    row = {"name": network.name, "settings": network.settings, "time": time.time(), "source": source}
    row |= {"published": network.costs, **result}
    if row.get("error"):
        return {**row, "error": f"{row['error']} ({source})"}
    times = {  # of one visit without a reference: drift and noise are unknown
        "corrected_ms": network.step_ms,
        "raw_ms": network.step_ms,
        "std_ms": 0.0,
        "mad_ms": 0.0,
        "reference_ms": 1.0,
        "relative": network.step_ms,
        "visits": [network.step_ms],
        "at_a_time": 1,
    }
    return {**row, "measured": {RUNTIME: times}}
