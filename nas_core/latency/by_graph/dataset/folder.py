"""Folders of measured networks with ONNX files without weights."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, DataError, MissingHostError, NasExtError
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.writing import make_folder, write_atomic
from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx.reader import describe_unknown, read_onnx
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.journal import check_conditions, read_journal
from nas_core.latency.protocol import is_positive

JOURNAL = "dataset.jsonl"
_FORMAT, _VERSION = "nas-ext/network-latencies", 1

_log = logging.getLogger(__name__)


@dataclass
class NetworkSet:
    """Folder of measured networks, with one row per network.

    Rows have ``name``, ``family``, ``settings``, ``time`` (seconds since 1970), and either ``error`` or ``seconds``
    (spent on the network), ``nodes``, ``flops_g``, ``params_m``, ``access_m``, ``unknown`` (counts of unknown
    operators) and ``measured``. ``measured`` has for each runtime ``corrected_ms`` (corrected for changes of machine
    speed), ``raw_ms``, ``std_ms``, ``mad_ms``, ``reference_ms``, ``relative`` (latency / reference), ``visits``
    (``relative`` of each measurement) and ``at_a_time`` (passes timed together; times are of one pass).
    """

    path: Path
    settings: dict[str, Any]
    machine: dict[str, Any]
    reference_ms: dict[str, float]
    """Time of the reference network in each runtime when the folder was created."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def create(
        cls,
        path: str | Path,
        settings: Mapping[str, Any],
        machine: Mapping[str, Any],
        reference_ms: Mapping[str, float],
    ) -> NetworkSet:
        """Create a folder and write the header of its journal.

        Args:
            reference_ms: latency of the reference network in ms, by runtime.
        """
        dataset = cls(Path(path), dict(settings), dict(machine), dict(reference_ms))
        make_folder(dataset.path / "onnx")
        header = {"format": _FORMAT, "version": _VERSION, "settings": dataset.settings, "machine": dataset.machine}
        append_jsonl(dataset.path / JOURNAL, {**header, "reference_ms": dataset.reference_ms})
        return dataset

    @classmethod
    def read(cls, path: str | Path) -> NetworkSet:
        """Read a folder of measured networks."""
        journal = Path(path) / JOURNAL
        header, *rows = read_journal(journal, _FORMAT, _VERSION, "latencies of networks", "nas-ext latency dataset")
        try:
            settings, machine = dict(header["settings"]), dict(header["machine"])
            reference = {name: float(value) for name, value in header["reference_ms"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{journal}, line 1 is damaged ({error}); restore it or measure again") from None
        for number, row in enumerate(rows, start=2):
            if not _is_valid(row, reference):
                raise DataError(f"{journal}, line {number} is damaged; remove the line, its network is measured again")
        return cls(Path(path), settings, machine, reference, rows)

    @classmethod
    def resume(cls, path: Path, settings: Mapping[str, Any], machine: Mapping[str, Any]) -> NetworkSet | None:
        """Read an existing folder and check its settings and machine; return None if there is no folder."""
        if not ((path / JOURNAL).exists() and read_jsonl(path / JOURNAL)):
            return None
        dataset = cls.read(path)
        check_conditions(path, (dataset.settings, dataset.machine), (settings, machine), "folder")
        return dataset

    def onnx_path(self, name: str) -> Path:
        return self.path / "onnx" / f"{name}.onnx"

    def append(self, row: Mapping[str, Any], content: bytes | None = None) -> None:
        """Add the row of a network, after writing its ONNX file with the bytes ``content``."""
        if content is not None:
            write_atomic(self.onnx_path(row["name"]), content)
        append_jsonl(self.path / JOURNAL, row)
        self.rows.append(dict(row))

    def measured(self, runtime: str) -> list[dict[str, Any]]:
        """Return the rows without ``error``; raise a ConfigError if nothing was measured in the runtime."""
        if runtime not in self.reference_ms:
            raise ConfigError(
                f"{self.path} was not measured in runtime {runtime!r}; expected {' or '.join(self.reference_ms)}"
            )
        return [row for row in self.rows if "error" not in row]


def _is_valid(row: Mapping[str, Any], runtimes: Iterable[str]) -> bool:
    try:
        texts = [row["name"], row["family"]]
        times = [] if "error" in row else [row["measured"][runtime] for runtime in runtimes]
        values = [time[name] for time in times for name in ("corrected_ms", "relative", "reference_ms")]
    except (LookupError, TypeError):
        return False
    return "settings" in row and all(isinstance(text, str) for text in texts) and all(map(is_positive, values))


def read_dataset(folder: str | Path, runtime: str = "onnxruntime") -> NetworkLatencies:
    """Read the networks of a folder of ``nas-ext latency dataset`` in the order of measurement.

    Latencies are corrected for changes of machine speed. The last tenth of each family is held out. The graphs are
    cached in the file ``graphs-RUNTIME.npz`` in the folder.
    """
    dataset = NetworkSet.read(folder)
    rows = dataset.measured(runtime)
    if not rows:
        raise DataError(
            f"{folder} has no measured network among {len(dataset.rows)}; run 'nas-ext latency dataset' to add some"
        )
    skipped = [(row["name"], row["error"]) for row in dataset.rows if "error" in row]
    state_ms = float(np.median([row["measured"][runtime]["reference_ms"] for row in rows]))
    latency_ms = np.array([row["measured"][runtime]["relative"] * state_ms for row in rows])
    names = [row["name"] for row in rows]
    cache = dataset.path / f"graphs-{runtime}.npz"
    if cache.exists():
        with contextlib.suppress(DataError):  # a damaged cache is made anew
            cached = NetworkLatencies.load(cache)
            if cached.names.tolist() == names:
                return replace(cached, latency_ms=latency_ms, skipped=tuple(skipped))
    graphs, unread = _read_graphs(dataset, names)
    indices = list(graphs)
    families = [rows[index]["family"] for index in indices]
    networks = NetworkLatencies(
        Graphs.of(list(graphs.values())),
        latency_ms[indices],
        np.array(families),
        np.array(names)[indices],
        last_of_each(families),
        (*skipped, *unread),
    )
    if not unread:
        with contextlib.suppress(NasExtError, OSError):  # a read-only folder is read anew each time
            networks.save(cache)
    return networks


def _read_graphs(dataset: NetworkSet, names: Sequence[str]) -> tuple[dict[int, Graph], list[tuple[str, str]]]:
    """Return the graphs of networks by index, and the names of unreadable networks with the reasons."""
    graphs: dict[int, Graph] = {}
    skipped: list[tuple[str, str]] = []
    unknown: Counter[str] = Counter()
    for index, name in enumerate(names):
        try:
            network = read_onnx(dataset.onnx_path(name), warn=False)
        except MissingHostError:
            raise
        except NasExtError as error:
            skipped.append((name, str(error)))
        else:
            graphs[index] = network.graph
            unknown.update(network.unknown)
    if not graphs:
        raise DataError(f"none of the {len(names)} networks of {dataset.path} can be read; the first: {skipped[0][1]}")
    if skipped:
        first = skipped[0][1]
        _log.warning("%s: %d of %d networks are skipped; the first: %s", dataset.path, len(skipped), len(names), first)
    if unknown:
        _log.warning("%s", describe_unknown(str(dataset.path), unknown))
    return graphs, skipped


def load_networks(path: str | Path, runtime: str = "onnxruntime") -> NetworkLatencies:
    """Load measured networks.

    Args:
        path: folder of ``nas-ext latency dataset``, or .npz file of :meth:`NetworkLatencies.save`.
        runtime: runtime of the latencies, if the folder has several.
    """
    source = Path(path)
    if (source / JOURNAL).exists():
        return read_dataset(source, runtime)
    if source.is_dir() or (source.exists() and source.suffix != ".npz"):
        raise DataError(
            f"{path} holds no networks; expected a folder of 'nas-ext latency dataset' ({JOURNAL}), or an .npz file of"
            " network latencies"
        )
    return NetworkLatencies.load(source)


def measured_on(path: str | Path) -> dict[str, Any] | None:
    """Return the description of the machine of a folder of ``nas-ext latency dataset``; None for other data."""
    return NetworkSet.read(path).machine if (Path(path) / JOURNAL).exists() else None
