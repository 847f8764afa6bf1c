"""Measurements of architectures from files, whichever form they have."""

from __future__ import annotations

from pathlib import Path

from nas_core.errors import DataError
from nas_core.latency.by_genes.data import LatencyData
from nas_core.latency.by_genes.dataset import LatencyDataset
from nas_core.latency.by_genes.hat_tables import read_hat_table
from nas_core.space import SearchSpace


def load_latency_data(path: str | Path, space: SearchSpace | None = None, table: str | None = None) -> LatencyData:
    """Measurements from a file of ``nas-ext latency collect`` (.jsonl) or from a table of HAT's (.csv, .npz).

    Args:
        space: of HAT's tables, which do not name it (default ``hat_wmt14_en_de``).
        table: which table of an .npz file.

    Raises:
        DataError: the file is missing, empty, damaged or of another kind.
    """
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".npz"):
        return read_hat_table(path, table, space)
    if suffix != ".jsonl":
        raise DataError(
            f"{path}: expected measurements as .jsonl (nas-ext latency collect), or a HAT table as .csv or .npz"
        )
    return LatencyDataset.read(path).data()
