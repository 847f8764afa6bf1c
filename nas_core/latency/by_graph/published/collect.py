"""Tables of published latencies, and folders with the exported graphs of their networks."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.files.reading import read_bytes, real_path
from nas_core.jobs import Failure, Opener
from nas_core.latency.by_graph.dataset.collect import dataset_lock
from nas_core.latency.by_graph.dataset.export import OPSET
from nas_core.latency.by_graph.dataset.folder import NetworkSet
from nas_core.optional import require
from nas_core.progress import progress_bar
from nas_core.workers import WorkerPool

RUNTIME = "torch"
_UNKNOWN_FAMILY = "unknown"
_PER_WORKER = 100  # networks per worker process; torch keeps memory of each traced network
# names of each column, here and in timm's benchmark-infer-*.csv; the last three are optional
_COLUMNS = {
    "model": ("model",),
    "img_size": ("img_size", "infer_img_size"),
    "batch_size": ("batch_size", "infer_batch_size"),
    "step_ms": ("step_ms", "infer_step_time"),
    "params_m": ("param_count_m", "param_count", "infer_param_count"),
    "gmacs": ("gmacs", "infer_gmacs"),
    "macts": ("macts", "infer_macts"),
}
_COSTS = ("params_m", "gmacs", "macts")
_LIMITS = {"max_seconds": 300.0, "max_memory_gb": 8.0, "max_nodes": 5000}  # of the export of a network
_SEED = 0  # of the order of the networks, recorded in folders
_GZIP = b"\x1f\x8b"
_MAX_BYTES = 2**26


@dataclass(frozen=True)
class PublishedNetwork:
    """Network in a table of published latencies."""

    model: str
    img_size: int
    batch_size: int
    step_ms: float
    """Time of a pass of one batch."""
    params_m: float | None = None
    gmacs: float | None = None
    """Billion multiply-adds for one image."""
    macts: float | None = None
    """Million activations of convolutions and linear layers for one image."""

    @property
    def name(self) -> str:
        """Name that is unique in the measurements of a device."""
        return f"{self.model}-{self.img_size}-b{self.batch_size}"

    @property
    def settings(self) -> dict[str, Any]:
        return {"model": self.model, "img_size": self.img_size, "batch_size": self.batch_size}

    @property
    def costs(self) -> dict[str, float]:
        return {name: value for name in _COSTS if (value := getattr(self, name)) is not None}


def read_published(path: str | Path, device: str | None = None) -> dict[str, list[PublishedNetwork]]:
    """Read published latencies from a CSV file, plain or gzipped.

    Args:
        device: name of the device if the file has no column ``device``; None: the name of the file.

    Returns:
        Networks by device, in the order of the file.
    """
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    header = reader.fieldnames or []
    columns = {name: next((column for column in names if column in header), "") for name, names in _COLUMNS.items()}
    for name, column in columns.items():
        if not column and name not in _COSTS:
            raise DataError(f"{path} has no column {' or '.join(_COLUMNS[name])}; it has {', '.join(header) or 'none'}")
    default_device = device or Path(path).name.partition(".")[0].removeprefix("benchmark-infer-")
    devices: dict[str, dict[str, PublishedNetwork]] = {}
    for cells in reader:
        location = f"{path}, line {reader.line_num}"
        costs = {name: _number(cells, columns[name], location) for name in _COSTS if cells.get(columns[name])}
        img_size, batch_size = (
            int(_number(cells, columns[name], location, int)) for name in ("img_size", "batch_size")
        )
        step_ms = _number(cells, columns["step_ms"], location)
        network = PublishedNetwork(cells[columns["model"]], img_size, batch_size, step_ms, **costs)
        networks = devices.setdefault(cells.get("device", default_device), {})
        if networks.setdefault(network.name, network) is not network:
            raise DataError(f"{location}: network {network.name} has two lines; remove one")
    if not devices:
        raise DataError(f"{path} has no measurement below its header; expected one network in each line")
    return {name: list(networks.values()) for name, networks in devices.items()}


def _text(path: str | Path) -> str:
    content = read_bytes(path, _MAX_BYTES)
    try:
        if content.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(_MAX_BYTES)
        return content.decode("utf-8-sig")
    except (EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} is not a CSV file, plain or compressed with gzip ({error}); give another file"
        ) from None


def _number(cells: Mapping[str, str], column: str, location: str, kind: Callable[[str], float] = float) -> float:
    text = cells[column] or ""
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        expected = "a whole number" if kind is int else "a number"
        raise DataError(f"{location}: {column} is {text!r}, expected {expected} above 0; correct or remove the line")
    return value


class NetworkSource(NamedTuple):
    """Builder of published networks by name."""

    name: str
    version: str
    opener: Opener
    """Importable function with the arguments of :func:`nas_core.latency.by_graph.published.export.exporting` except
    ``build``, which returns the result of ``exporting``."""


def collect_published(
    path: str | Path,
    table: Mapping[str, Sequence[PublishedNetwork]],
    source: NetworkSource,
    device: str | None = None,
    count: int | None = None,
    progress: bool | None = None,
) -> NetworkSet:
    """Export networks with published latencies until the folder has ``count``, including skipped ones.

    A second call continues. Rows are those of :class:`NetworkSet` with the published latency in runtime ``torch``, plus
    ``published`` (costs in the table) and ``source``.

    Args:
        table: networks by device, from :func:`read_published`.
        device: device in the table; None: the only one.
        count: number of networks; None: all.
        progress: True: a bar; False: nothing; None: a bar on a terminal, otherwise one line per minute.

    Raises:
        ConfigError: the folder has other networks, or another process writes to it.
        NasExtError: no network can be exported.
    """
    folder = Path(path)
    require("onnx", "exporting networks", "onnx")
    if device is None and len(table) > 1:
        raise ConfigError(f"the table has measurements of {', '.join(table)}; give one of them with --device")
    name = next(iter(table)) if device is None else device
    if name not in table:
        raise unknown_choice("device of the table", name, table)
    networks = table[name]
    if count is not None and not 1 <= count <= len(networks):
        raise ConfigError(f"count is {count}, but the table has {len(networks)} networks of {name}; give at most that")
    planned = sorted(networks, key=_order_key)[:count]
    digest = hashlib.sha256(json.dumps([asdict(network) for network in networks], sort_keys=True).encode()).hexdigest()
    settings = {"source": source.name, "table": digest[:12], "seed": _SEED, "opset": OPSET}
    machine = {"device_name": name, "measured_by": f"as published by {source.name}"}
    with dataset_lock(folder):
        dataset = NetworkSet.resume(folder, settings, machine)
        if dataset is None:
            dataset = NetworkSet.create(folder, settings, machine, {RUNTIME: 1.0})
        exported = {row["name"] for row in dataset.rows}
        waiting = [network for network in planned if network.name not in exported]
        limits = {"folder": str(real_path(dataset.path / "onnx")), **_LIMITS}
        with progress_bar("exporting", len(waiting), "network", progress) as advance:
            for first in range(0, len(waiting), _PER_WORKER):
                group = waiting[first : first + _PER_WORKER]
                items = [{"name": row.name, **row.settings, "params_m": row.params_m} for row in group]
                with WorkerPool(source.opener, [limits], ["this machine"]) as pool:
                    for network, outcome in zip(group, pool.map(items), strict=True):
                        dataset.append(_row(network, outcome, f"{source.name} {source.version}"))
                        advance(1)
    if all("error" in row for row in dataset.rows):
        last = dataset.rows[-1]["error"]
        raise NasExtError(f"none of {len(dataset.rows)} networks can be exported; the reason of the last is: {last}")
    return dataset


def _order_key(network: PublishedNetwork) -> tuple[str, int]:
    text = f"{_SEED} {network.model} {network.img_size}"
    return hashlib.sha256(text.encode()).hexdigest(), network.batch_size


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
