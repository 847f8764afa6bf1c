"""Readers of measured networks: folders of ``nas-ext latency dataset``, the NNLQP release, and .npz files.

NNLQP (Liu et al., ICPP 2022) is a folder with a table and 20,000 ONNX files of ten families. Its columns are id, ONNX
file, batch size, latency in ms, family, platform, and in ``gt_stage.txt`` (of NAR-Former V2) train or test. Without a
stage, the last tenth of each family (200) is the test part.
"""

from __future__ import annotations

import logging
from collections import Counter
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
_WITH_STAGE = 7
"""Cells of a row with train or test."""

_log = logging.getLogger(__name__)


def load_networks(path: str | Path, runtime: str = "onnxruntime") -> NetworkLatencies:
    """Load measured networks.

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
        return read_nnlqp(source)
    if source.is_dir() or (source.exists() and source.suffix != ".npz"):
        raise DataError(
            f"{path} holds no networks; expected a folder of 'nas-ext latency dataset' ({JOURNAL}), of NNLQP"
            f" ({' or '.join(TABLES)}), or an .npz file of network latencies"
        )
    return NetworkLatencies.load(source)


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
    lines = read_bytes(path).decode("utf-8", errors="replace").splitlines()
    cells = {number: line.split() for number, line in enumerate(lines, 1) if line.strip()}
    if not cells:
        raise DataError(f"{path} is empty; expected rows of id, ONNX file, batch, latency, family, platform")
    rows = []
    for number, row in cells.items():
        try:
            rows.append(NnlqpRow(row[0], row[1], int(row[2]), float(row[3]), row[4], row[-1] == "test"))
        except (IndexError, ValueError):
            raise DataError(
                f"{path}, line {number} is {' '.join(row)[:80]!r}; expected id, ONNX file, batch, latency, family,"
                " platform, and optionally train or test"
            ) from None
    if all(len(row) == _WITH_STAGE for row in cells.values()):
        return rows
    last = last_of_each([row.family for row in rows])
    return [row._replace(held_out=bool(held_out)) for row, held_out in zip(rows, last, strict=True)]


def read_nnlqp(folder: str | Path, features: str = "corrected") -> NetworkLatencies:
    """Read all networks of a folder of NNLQP as graphs, in minutes; unreadable ones are recorded as skipped.

    Args:
        features: encoding of the nodes, see :func:`nas_core.graph.onnx.reader.read_onnx`.

    Raises:
        DataError: there is no table, a malformed row, or no readable network.
    """
    root = Path(folder)
    rows = read_nnlqp_table(next((root / table for table in TABLES if (root / table).exists()), root / TABLES[-1]))
    read: list[tuple[NnlqpRow, Graph]] = []
    skipped: list[tuple[str, str]] = []
    unknown: Counter[str] = Counter()
    for row in rows:
        try:
            network = read_onnx(root / row.path, batch=row.batch, features=features, warn=False)
        except MissingHostError:
            raise
        except NasExtError as error:
            skipped.append((row.path, str(error)))
        else:
            read.append((row, network.graph))
            unknown.update(network.unknown)
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
