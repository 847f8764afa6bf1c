"""A folder of measured networks as what latency models learn from."""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from nas_core.errors import DataError, NasExtError
from nas_core.files import file_digest
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.graph.onnx import describe_unknown, read_onnx
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet

_log = logging.getLogger(__name__)
_CACHE = re.compile(r"graphs-\w+-[0-9a-f]{12}\.npz")


def read_dataset(folder: str | Path, runtime: str = "onnxruntime", cache: bool = True) -> NetworkLatencies:
    """The networks of a folder of ``nas-ext latency dataset`` in the order in which they were measured.

    Latencies have drift divided out: in the state of the machine that was usual over the whole folder, not that of its
    beginning. The last tenth of each family is held out.

    Args:
        cache: keep what was read as ``graphs-RUNTIME-*.npz`` in the folder, and use that as long as no row is added.

    Raises:
        DataError: no such folder, another or a damaged one, or one without a measured network. ConfigError: it was not
        measured in that runtime. MissingHostError: onnx is not installed.
    """
    found = NetworkSet.read(folder)
    rows = found.measured(runtime)
    if not rows:
        raise DataError(
            f"{folder} holds no measured network among {len(found.rows)}; 'nas-ext latency dataset' adds them"
        )
    skipped = [(row["name"], row["error"]) for row in found.rows if "error" in row]
    kept = _cache_path(found.path, runtime)
    if cache and kept.exists():
        with contextlib.suppress(DataError):  # damaged: read anew
            return replace(NetworkLatencies.load(kept), skipped=tuple(skipped))
    state_ms = float(np.median([row["measured"][runtime]["reference_ms"] for row in rows]))
    graphs: list[Graph] = []
    read = []
    for row in rows:
        try:
            network = read_onnx(found.onnx_path(row["name"]), warn=False)
        except GraphError as error:
            skipped.append((row["name"], str(error)))
            continue
        if network.unknown:
            _log.warning("%s", describe_unknown(row["name"], network.unknown))
        graphs.append(network.graph)
        read.append(row)
    if not read:
        raise DataError(f"none of the {len(rows)} ONNX files of {folder} can be read: {skipped[-1][1]}")
    if len(read) < len(rows):
        _log.warning(
            "%s: %d of %d ONNX files cannot be read; the last: %s",
            folder,
            len(rows) - len(read),
            len(rows),
            skipped[-1][1],
        )
    families = [row["family"] for row in read]
    made = NetworkLatencies(
        Graphs.of(graphs),
        np.array([row["measured"][runtime]["relative"] * state_ms for row in read]),
        np.array(families),
        np.array([row["name"] for row in read]),
        last_of_each(families),
        tuple(skipped),
    )
    if cache and len(read) == len(rows):
        _keep(made, kept, runtime)
    return made


def _cache_path(folder: Path, runtime: str) -> Path:
    """Named by what the journal holds, so that a journal with more rows has another one."""
    return folder / f"graphs-{runtime}-{file_digest(folder / JOURNAL)[:12]}.npz"


def _keep(made: NetworkLatencies, path: Path, runtime: str) -> None:
    """In place of the older ones. A folder that cannot be written is read anew each time."""
    with contextlib.suppress(NasExtError, OSError):
        made.save(path)
        for older in path.parent.glob(f"graphs-{runtime}-*.npz"):
            if older != path and _CACHE.fullmatch(older.name):
                older.unlink(missing_ok=True)
