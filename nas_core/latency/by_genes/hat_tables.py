"""Reader of HAT's latency tables (MIT licence): ten averages of an architecture and its encoder and decoder latency.

Rows are in the order in which they were measured. The tables come from a superset of the space that HAT searches
(feed-forward sizes from 512, 2 heads), and hold no size of a single layer.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError, SpaceError
from nas_core.files import DAMAGED_ARCHIVE, open_npz, read_bytes
from nas_core.latency.by_genes.data import LatencyData
from nas_core.space import SearchSpace, get_space

_GENES = {
    "encoder_embed_dim": "encoder.embed_dim",
    "encoder_layer_num": "encoder.layers",
    "encoder_ffn_embed_dim_avg": "encoder.ffn_dim",
    "encoder_self_attention_heads_avg": "encoder.self_heads",
    "decoder_embed_dim": "decoder.embed_dim",
    "decoder_layer_num": "decoder.layers",
    "decoder_ffn_embed_dim_avg": "decoder.ffn_dim",
    "decoder_self_attention_heads_avg": "decoder.self_heads",
    "decoder_ende_attention_heads_avg": "decoder.cross_heads",
    "decoder_arbitrary_ende_attn_avg": "decoder.arbitrary_cross",
}
_PARTS = ("latency_mean_encoder", "latency_mean_decoder")
COLUMNS = (*_GENES, *_PARTS, "latency_std_encoder", "latency_std_decoder")
"""Columns of a table; the last two are not used and may be missing."""


def list_hat_tables(path: str | Path) -> list[str]:
    """Names of the tables in an .npz file: arrays ``NAME`` ``(n, columns)`` that have ``NAME__columns``."""
    with _open(path) as file:
        return [name for name in file.files if f"{name}__columns" in file.files]


def read_hat_table(path: str | Path, table: str | None = None, space: SearchSpace | None = None) -> LatencyData:
    """One table from HAT's .csv, or the table ``table`` of an .npz; latency is encoder + decoder, in ms.

    Args:
        space: whose genes the averages belong to; default ``hat_wmt14_en_de``.

    Raises:
        DataError: the file is missing, a column is missing, a cell is no finite number, or there are no rows.
        SpaceError: the space does not have HAT's ten genes.
    """
    space = space or get_space("hat_wmt14_en_de")
    names = [choice.name for choice in space.choices]
    if sorted(names) != sorted(_GENES.values()):
        raise SpaceError(f"space {space.name!r} does not have HAT's ten genes: a table of HAT's cannot be read for it")
    columns, values = _csv(path) if Path(path).suffix.lower() == ".csv" else _npz(path, table)
    missing = [name for name in (*_GENES, *_PARTS) if name not in columns]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}; HAT's tables have {', '.join(COLUMNS)}")
    if not len(values):
        raise DataError(f"{path} holds no measurement; give a table with rows")
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"{path}, row {bad[0][0] + 1}: {columns[bad[0][1]]} is not a finite number; correct or remove it"
        )
    where = {gene: values[:, columns.index(column)] for column, gene in _GENES.items()}
    averages = np.stack([where[name] / space.choice(name).unit for name in names], axis=1)
    latency = values[:, columns.index(_PARTS[0])] + values[:, columns.index(_PARTS[1])]
    info = {"machine": {"table": table or Path(path).stem}, "settings": {}, "reference_ms": None}
    return LatencyData(space, "summary", averages, latency, np.arange(len(latency), dtype=np.float64), False, info)


def _csv(path: str | Path) -> tuple[list[str], NDArray[np.float64]]:
    try:
        text = read_bytes(path).decode("utf-8")
        lines = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV table ({error})") from None
    if not lines:
        raise DataError(f"{path} is empty; HAT's tables start with a line of column names")
    columns = [name.strip() for name in lines[0]]
    for number, row in enumerate(lines[1:], start=2):
        if len(row) != len(columns):
            raise DataError(f"{path}, line {number} has {len(row)} cells, expected {len(columns)}")
    try:
        return columns, np.array(lines[1:], np.float64).reshape(-1, len(columns))
    except ValueError as error:
        raise DataError(f"{path} holds a cell that is no number ({error})") from None


def _npz(path: str | Path, table: str | None) -> tuple[list[str], NDArray[np.float64]]:
    tables = list_hat_tables(path)
    if table is None and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        got = f"has no table {table!r}" if table else "holds several tables"
        raise DataError(f"{path} {got}; choose one of: {', '.join(tables) or 'none'}")
    with _open(path) as file:
        columns, values = [str(name) for name in file[f"{table}__columns"]], np.asarray(file[table], np.float64)
    if values.ndim != 2 or values.shape[1] != len(columns):
        raise DataError(f"{path}: table {table!r} has shape {values.shape} for {len(columns)} columns; make it anew")
    return columns, values


@contextlib.contextmanager
def _open(path: str | Path) -> Iterator[np.lib.npyio.NpzFile]:
    try:
        with open_npz(path) as file:
            yield file
    except DAMAGED_ARCHIVE as error:
        raise DataError(f"{path} is no .npz file of tables, or is damaged ({error})") from None
