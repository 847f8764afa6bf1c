"""Measured networks from whatever holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nas_core.errors import DataError
from nas_core.latency.by_graph.data import NetworkLatencies
from nas_core.latency.by_graph.dataset.folder import JOURNAL, NetworkSet
from nas_core.latency.by_graph.dataset.reading import read_dataset
from nas_core.latency.by_graph.nnlqp import TABLES, read_nnlqp


def load_networks(path: str | Path, runtime: str = "onnxruntime") -> NetworkLatencies:
    """Read a folder of ``nas-ext latency dataset``, the unpacked NNLQP release, or an .npz file of
    :meth:`NetworkLatencies.save`, which holds one runtime. Each network once, however often it was measured.

    Args:
        runtime: whose latencies, where the folder has several.

    Raises:
        DataError: the path is missing or something else. ConfigError: a runtime that was not measured.
    """
    given = Path(path)
    if given.is_dir() and (given / JOURNAL).exists():
        return read_dataset(given, runtime)
    if given.is_dir() and any((given / table).exists() for table in TABLES):
        return read_nnlqp(given).without_repeats(path)
    if given.is_dir() or (given.exists() and given.suffix != ".npz"):
        raise DataError(
            f"{path} holds no networks; expected a folder of 'nas-ext latency dataset' ({JOURNAL}), of NNLQP"
            f" ({' or '.join(TABLES)}), or an .npz file of network latencies"
        )
    return NetworkLatencies.load(given).without_repeats(path)


def measured_on(path: str | Path) -> dict[str, Any] | None:
    """The machine of a folder of ``nas-ext latency dataset``; None of what does not say."""
    return NetworkSet.read(path).machine if (Path(path) / JOURNAL).exists() else None
