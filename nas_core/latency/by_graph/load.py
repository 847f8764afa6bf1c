"""Readers of measured networks: folders of ``nas-ext latency dataset``, the NNLQP release, and .npz files.

NNLQP (Liu et al., ICPP 2022) is a folder with a table and 20,000 ONNX files of ten families. Its columns are id, ONNX
file, batch size, latency in ms, family, platform, and in ``gt_stage.txt`` (of NAR-Former V2) train or test. Without a
stage, the last tenth of each family (200) is the test part.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nas_core.errors import DataError, MissingHostError, NasExtError
from nas_core.files.reading import read_bytes
from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx.reader import describe_unknown, read_onnx
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet, read_dataset

TABLES = ("gt_stage.txt", "gt.txt")
"""Names of NNLQP's table, in order of preference."""

_log = logging.getLogger(__name__)


def load_networks(path: str | Path, runtime: str = "onnxruntime") -> NetworkLatencies:
    """Load measured networks, without repeated ones.

    Args:
        path: folder of ``nas-ext latency dataset``, the NNLQP release, or an .npz file of
            :meth:`NetworkLatencies.save`.
        runtime: runtime of the latencies, for a folder with several.

    Raises:
        DataError: the path is missing or of another kind.
    """
    source = Path(path)
    if (source / JOURNAL).exists():
        return read_dataset(source, runtime)
    if any((source / table).exists() for table in TABLES):
        return read_nnlqp(source).without_repeats(path)
    if source.is_dir() or (source.exists() and source.suffix != ".npz"):
        raise DataError(
            f"{path} holds no networks; expected a folder of 'nas-ext latency dataset' ({JOURNAL}), of NNLQP"
            f" ({' or '.join(TABLES)}), or an .npz file of network latencies"
        )
    return NetworkLatencies.load(source).without_repeats(path)


def measured_on(path: str | Path) -> dict[str, Any] | None:
    """Return the machine of a folder of ``nas-ext latency dataset``, else None."""
    return NetworkSet.read(path).machine if (Path(path) / JOURNAL).exists() else None


class NnlqpRow(NamedTuple):
    """Row of NNLQP's table."""

    id: str
    path: str
    """Path of the ONNX file, relative to the folder."""
    batch: int
    latency_ms: float
    family: str
    held_out: bool


def read_nnlqp_table(path: str | Path) -> list[NnlqpRow]:
    """Read the rows of ``gt.txt`` or ``gt_stage.txt``, in order.

    Raises:
        DataError: a row is malformed, or there is none.
    """
    try:
        lines = read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no table of NNLQP ({error})") from None
    cells = {number: line.split() for number, line in enumerate(lines, 1) if line.strip()}
    if not cells:
        raise DataError(f"{path} is empty; expected rows of id, ONNX file, batch, latency, family, platform")
    rows = [_row(row, f"{path}, line {number}") for number, row in cells.items()]
    if {len(row) == 7 for row in cells.values()} == {True}:
        return rows
    last = last_of_each([row.family for row in rows])
    return [row._replace(held_out=bool(held_out)) for row, held_out in zip(rows, last, strict=True)]


def _row(cells: list[str], where: str) -> NnlqpRow:
    if len(cells) not in (5, 6, 7) or (len(cells) == 7 and cells[6] not in ("train", "test")):
        raise DataError(
            f"{where} is {' '.join(cells)[:80]!r}; expected id, ONNX file, batch, latency, family, platform, and train "
            "or test if at all"
        )
    try:
        batch, latency_ms = int(cells[2]), float(cells[3])
    except ValueError:
        batch, latency_ms = 0, 0.0
    if batch < 1 or not 0 < latency_ms < math.inf:
        raise DataError(f"{where}: batch {cells[2]!r} and latency {cells[3]!r}; expected numbers above 0")
    return NnlqpRow(cells[0], cells[1], batch, latency_ms, cells[4], cells[-1] == "test")


def read_nnlqp(
    folder: str | Path,
    *,
    table: str | Path | None = None,
    features: str = "corrected",
    progress: Callable[[int, int], None] | None = None,
) -> NetworkLatencies:
    """Read all networks of a folder of NNLQP as graphs, in minutes; unreadable ones are recorded as skipped.

    Args:
        features: encoding of the nodes, see :func:`nas_core.graph.onnx.reader.read_onnx`.
        progress: called with the number of files read, and of all files.

    Raises:
        DataError: there is no table, a malformed row, or no readable network.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{folder} is no folder; expected the unpacked NNLQP release with {' or '.join(TABLES)}")
    rows = read_nnlqp_table(table or next((root / t for t in TABLES if (root / t).exists()), root / TABLES[-1]))
    read: list[tuple[NnlqpRow, Graph]] = []
    skipped: list[tuple[str, str]] = []
    unknown: Counter[str] = Counter()
    for done, row in enumerate(rows, 1):
        try:
            network = read_onnx(root / row.path, batch=row.batch, features=features, warn=False)
        except MissingHostError:
            raise
        except NasExtError as error:
            skipped.append((row.path, str(error)))
        else:
            read.append((row, network.graph))
            unknown.update(network.unknown)
        if progress is not None:
            progress(done, len(rows))
    if not read:
        raise DataError(f"none of the {len(rows)} networks of {folder} can be read; the first: {skipped[0][1]}")
    if skipped:
        _log.warning("%d of %d networks are skipped; the first: %s", len(skipped), len(rows), skipped[0][1])
    if unknown:
        _log.warning("%s", describe_unknown(str(folder), unknown))
    return NetworkLatencies(
        Graphs.of([graph for _, graph in read]),
        np.array([row.latency_ms for row, _ in read]),
        np.array([row.family for row, _ in read]),
        np.array([row.path for row, _ in read]),
        np.array([row.held_out for row, _ in read]),
        tuple(skipped),
    )
