"""Reader of the NNLQP release: 20,000 networks of ten families as ONNX files, and their latency.

Liu et al., "NNLQP: A Multi-Platform Neural Network Latency Query and Prediction System with An Evolving Database", ICPP
2022. A folder holds a table and the files it names. A row of the table: id, path of the ONNX file from the folder,
batch size, latency in ms, family, platform, and in ``gt_stage.txt`` (of NAR-Former V2) also train or test. Where the
last is absent it follows from the order: of each family the first nine tenths (1,800) train, the last tenth (200) test.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nas_core.errors import DataError, MissingHostError, NasExtError
from nas_core.files import read_bytes
from nas_core.graph import Graph, Graphs
from nas_core.graph.onnx import describe_unknown, read_onnx
from nas_core.latency.by_graph.data import NetworkLatencies, last_of_each

TABLES = ("gt_stage.txt", "gt.txt")
"""Names of the table in a folder; the first that is there is read."""
_STAGES = ("train", "test")

_log = logging.getLogger(__name__)


class NnlqpRow(NamedTuple):
    """One network of the table."""

    id: str
    path: str
    """Path of the ONNX file, from the folder."""
    batch: int
    latency_ms: float
    family: str
    held_out: bool


def read_nnlqp_table(path: str | Path) -> list[NnlqpRow]:
    """The rows of ``gt.txt`` or ``gt_stage.txt``, in the file's order.

    Raises:
        DataError: the file is missing, empty or a pipe, or a row is malformed; the message says which.
        NasExtError: it cannot be read.
    """
    try:
        lines = read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no table of NNLQP ({error})") from None
    rows = [_row(line.split(), f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise DataError(f"{path} is empty; expected rows of id, ONNX file, batch, latency, family, platform")
    stages = {stage is None for _, stage in rows}
    if len(stages) > 1:
        raise DataError(f"{path} says train or test in some rows only; expected all or none")
    last = last_of_each([row.family for row, _ in rows])
    return [
        row._replace(held_out=bool(last[i]) if stage is None else stage == "test")
        for i, (row, stage) in enumerate(rows)
    ]


def _row(cells: list[str], where: str) -> tuple[NnlqpRow, str | None]:
    if len(cells) not in (5, 6, 7) or (len(cells) == 7 and cells[6] not in _STAGES):
        raise DataError(
            f"{where} is {' '.join(cells)[:80]!r}; expected id, ONNX file, batch, latency, family, platform, and train "
            "or test if at all"
        )
    try:
        batch, latency_ms = int(cells[2]), float(cells[3])
    except ValueError:
        batch, latency_ms = 0, 0.0
    if batch < 1 or not latency_ms > 0 or not math.isfinite(latency_ms):
        raise DataError(f"{where}: batch {cells[2]!r} and latency {cells[3]!r}; expected numbers above 0")
    return NnlqpRow(cells[0], cells[1], batch, latency_ms, cells[4], False), cells[6] if len(cells) == 7 else None


def read_nnlqp(
    folder: str | Path,
    *,
    table: str | Path | None = None,
    features: str = "corrected",
    progress: Callable[[int, int], None] | None = None,
) -> NetworkLatencies:
    """All networks of a folder as graphs. A network that cannot be read is skipped and recorded; save the result
    (:meth:`NetworkLatencies.save`): 20,000 files take minutes.

    Args:
        table: where the rows are, if not in the folder's ``gt_stage.txt`` or ``gt.txt``.
        features: encoding of the nodes, see :func:`nas_core.graph.onnx.read_onnx`.
        progress: called with the files read and the number of files.

    Raises:
        DataError: no table, a malformed row, or no network that can be read.
        MissingHostError: onnx is not installed.
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
