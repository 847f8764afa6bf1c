"""Folder of a data set: a journal of networks, and their ONNX files without weights."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, DataError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import file_digest
from nas_core.files.writing import make_folder, write_atomic
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.onnx.reader import describe_unknown, read_onnx
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.journal import check_conditions, read_journal
from nas_core.latency.machine import clock_warning
from nas_core.latency.protocol import is_positive

JOURNAL = "dataset.jsonl"
AGAIN = "again.jsonl"
_FORMAT, _VERSION = "nas-ext/network-latencies", 1
_CACHE = re.compile(r"graphs-\w+-[0-9a-f]{12}\.npz")

_log = logging.getLogger(__name__)


@dataclass
class NetworkSet:
    """Folder with one row per network.

    Rows have ``name``, ``family``, ``settings``, ``time`` (seconds since 1970), and either ``error`` or ``seconds``
    (spent on the network), ``nodes``, ``flops_g``, ``params_m``, ``access_m``, ``unknown`` (counts of unknown
    operators) and ``measured``. This has for each runtime ``corrected_ms`` (drift divided out), ``raw_ms``, ``std_ms``,
    ``mad_ms``, ``reference_ms``, ``relative`` (to the reference; also of each of the ``visits``), ``at_a_time`` (passes
    timed together; all times are of one) and ``clock_states``.
    """

    path: Path
    settings: dict[str, Any]
    machine: dict[str, Any]
    reference_ms: dict[str, float]
    """Time of the reference network in each runtime when the folder was created."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def begin(
        cls,
        path: str | Path,
        settings: Mapping[str, Any],
        machine: Mapping[str, Any],
        reference_ms: Mapping[str, float],
    ) -> NetworkSet:
        """Create a folder with its header."""
        dataset = cls(Path(path), dict(settings), dict(machine), dict(reference_ms))
        make_folder(dataset.path / "onnx")
        header = {"format": _FORMAT, "version": _VERSION, "settings": dataset.settings, "machine": dataset.machine}
        append_jsonl(dataset.path / JOURNAL, {**header, "reference_ms": dataset.reference_ms})
        return dataset

    @classmethod
    def read(cls, path: str | Path) -> NetworkSet:
        """Read the journal of a folder; the first row of a network counts.

        Raises:
            DataError: the folder is missing or damaged, or two networks share a name.
        """
        journal = Path(path) / JOURNAL
        header, rows = read_journal(journal, _FORMAT, _VERSION, "latencies of networks", "nas-ext latency dataset")
        try:
            reference = {str(name): float(value) for name, value in header["reference_ms"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{journal}: the header lacks or garbles {error}; restore it or measure anew") from None
        names: dict[str, str] = {}
        first: dict[str, dict[str, Any]] = {}
        for number, row in enumerate(rows, start=2):
            line = f"{journal}, line {number}"
            _check_row(row, reference, line)
            network = json.dumps([row["family"], row["settings"]], sort_keys=True)
            if names.setdefault(row["name"], network) != network:
                raise DataError(
                    f"{line}: {row['name']} is another network than before; remove the line, or the folder it came from"
                )
            first.setdefault(network, row)
        if repeated := len(rows) - len(first):
            _log.warning(
                "%s: %d of %d rows are of networks that it holds before; they are left out",
                journal,
                repeated,
                len(rows),
            )
        return cls(Path(path), header["settings"], header["machine"], reference, list(first.values()))

    @classmethod
    def continued(cls, path: Path, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> NetworkSet | None:
        """Return the folder, checked for these settings and machine, or None if it does not exist."""
        if not ((path / JOURNAL).exists() and read_jsonl(path / JOURNAL)):
            return None
        dataset = cls.read(path)
        dataset.must_match(settings, machine)
        return dataset

    def must_match(self, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
        """Raise a ConfigError if networks under these settings may not be added."""
        check_conditions(self, settings, machine, "folder")

    def onnx_path(self, name: str) -> Path:
        return self.path / "onnx" / f"{name}.onnx"

    def append(self, row: Mapping[str, Any], content: bytes | None = None) -> None:
        """Add one network: its ONNX file ``content``, then its row."""
        if content is not None:
            write_atomic(self.onnx_path(row["name"]), content)
        append_jsonl(self.path / JOURNAL, row)
        self.rows.append(dict(row))

    def clock_warning(self) -> str | None:
        return clock_warning(self.clock_states())

    def clock_states(self) -> list[dict[str, Any]]:
        times = [runtime for row in self.rows for runtime in (row.get("measured") or {}).values()]
        return [state for runtime in times for state in runtime.get("clock_states") or ()]

    def measured(self, runtime: str) -> list[dict[str, Any]]:
        """Return the rows of measured networks.

        Raises:
            ConfigError: the runtime was not measured.
        """
        if runtime not in self.reference_ms:
            raise ConfigError(
                f"{self.path} was not measured in runtime {runtime!r}; expected {' or '.join(self.reference_ms)}"
            )
        return [row for row in self.rows if "error" not in row]


def _check_row(row: Mapping[str, Any], runtimes: Mapping[str, float], line: str) -> None:
    if not all(isinstance(row.get(name), str) for name in ("name", "family")) or "settings" not in row:
        raise DataError(f"{line} lacks name, family or settings; remove the line")
    if "error" in row:
        return
    measured = row.get("measured")
    for runtime in runtimes:
        times = measured.get(runtime) if isinstance(measured, dict) else None
        for name in ("corrected_ms", "relative", "reference_ms"):
            value = times.get(name) if isinstance(times, dict) else None
            if not is_positive(value):
                raise DataError(f"{line}: {name} in {runtime} is {value!r}, expected a number above 0; remove the line")


def second_measurements(dataset: NetworkSet, runtime: str) -> dict[str, dict[str, Any]]:
    """Return by name the last second measurement of each network, as under ``measured`` in its row."""
    path = dataset.path / AGAIN
    names = {row["name"] for row in dataset.rows if "error" not in row}
    lines = read_jsonl(path) if path.exists() else []
    return {line["name"]: line["measured"][runtime] for line in lines if line["name"] in names}


def read_dataset(folder: str | Path, runtime: str = "onnxruntime", cache: bool = True) -> NetworkLatencies:
    """Read the networks of a folder of ``nas-ext latency dataset`` in measurement order.

    Latencies are in the machine's median state, with drift divided out. The last tenth of each family is held out.

    Args:
        cache: keep the graphs as ``graphs-RUNTIME-*.npz`` in the folder.

    Raises:
        DataError: the folder is damaged, or holds no measured network.
        ConfigError: it was not measured in that runtime.
    """
    dataset = NetworkSet.read(folder)
    rows = dataset.measured(runtime)
    if not rows:
        raise DataError(
            f"{folder} holds no measured network among {len(dataset.rows)}; 'nas-ext latency dataset' adds them"
        )
    skipped = [(row["name"], row["error"]) for row in dataset.rows if "error" in row]
    cached = dataset.path / f"graphs-{runtime}-{file_digest(dataset.path / JOURNAL)[:12]}.npz"
    if cache and cached.exists():
        with contextlib.suppress(DataError):  # damaged: read anew
            return replace(NetworkLatencies.load(cached), skipped=tuple(skipped))
    state_ms = float(np.median([row["measured"][runtime]["reference_ms"] for row in rows]))
    graphs: list[Graph] = []
    read = []
    for row in rows:
        try:
            network = read_onnx(dataset.onnx_path(row["name"]), warn=False)
        except GraphError as error:
            skipped.append((row["name"], str(error)))
            continue
        if network.unknown:
            _log.warning("%s", describe_unknown(row["name"], network.unknown))
        graphs.append(network.graph)
        read.append(row)
    if not read:
        raise DataError(f"none of the {len(rows)} ONNX files of {folder} can be read: {skipped[-1][1]}")
    if unread := len(rows) - len(read):
        last = skipped[-1][1]
        _log.warning("%s: %d of %d ONNX files cannot be read; the last: %s", folder, unread, len(rows), last)
    families = [row["family"] for row in read]
    networks = NetworkLatencies(
        Graphs.of(graphs),
        np.array([row["measured"][runtime]["relative"] * state_ms for row in read]),
        np.array(families),
        np.array([row["name"] for row in read]),
        last_of_each(families),
        tuple(skipped),
    )
    if cache and not unread:
        with contextlib.suppress(NasExtError, OSError):  # a folder that cannot be written is read anew each time
            networks.save(cached)
            for older in cached.parent.glob(f"graphs-{runtime}-*.npz"):
                if older != cached and _CACHE.fullmatch(older.name):
                    older.unlink(missing_ok=True)
    return networks
