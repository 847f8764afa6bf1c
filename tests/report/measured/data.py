"""Small data sets for tests of their pages: networks and architectures that were measured, cells with values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from nas_core.cli import main
from nas_core.latency.by_graph.dataset.collect import collect_networks
from tests.latency.by_genes.machine import Machine, run
from tests.latency.by_graph.dataset.tiny import BROKEN, CONFIG, ONE, TIMING, TWO
from tests.report.pages import ReadPage


def network_folder(path: Path, count: int = 18) -> Path:
    """Networks of two families, measured for real, and one of a family that fails."""
    collect_networks(path, (ONE, TWO, BROKEN[0]), count, TIMING, CONFIG, progress=False)
    return path


def architectures_file(path: Path, machine: Machine, samples: int = 24, seed: int = 4, **more: Any) -> Path:
    """Architectures of ``hat_small``, or of another ``space``, on a made-up machine that becomes slower."""
    machine.slower = 1.01
    run(path, machine, samples, seed=seed, **more)
    return path


def cells_file(path: Path, count: int = 60, seed: int = 0) -> Path:
    """Cells of NAS-Bench-201 in two families, whose value is the share of their convolutions, with some noise."""
    stream = np.random.default_rng(seed)
    rows = stream.integers(0, 5, (count, 6))
    values = 0.5 + 0.08 * np.isin(rows, (2, 3)).sum(1) + stream.normal(0, 0.01, count)
    records = [
        {"architecture": row.tolist(), "acc": float(value), "family": "even" if number % 2 == 0 else "odd"}
        for number, (row, value) in enumerate(zip(rows, values, strict=True))
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def report(*arguments: Any) -> int:
    """``nas-ext report`` with these arguments."""
    return main(["report", *map(str, arguments)])


class TablesPage(ReadPage):
    """A page with its tables, each as its header and its rows."""

    def __init__(self, text: str) -> None:
        self.tables: list[tuple[list[str], list[list[str]]]] = []
        self._cell: list[str] | None = None
        super().__init__(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "table":
            self.tables.append(([], []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("th", "td"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag in ("th", "td") and self._cell is not None and self.tables:
            header, rows = self.tables[-1]
            text = "".join(self._cell).strip()
            if tag == "th" and not any(rows[:-1]):
                header.append(text)
            else:
                rows[-1].append(text)
            self._cell = None

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self._cell is not None:
            self._cell.append(data)


def read(path: Path) -> TablesPage:
    return TablesPage(path.read_text(encoding="utf-8").replace(get_plotlyjs(), ""))  # megabytes, which take seconds


def rows_of(page: TablesPage, *header: str) -> list[list[str]]:
    """The rows of the first table whose header begins so."""
    results = [rows for head, rows in page.tables if tuple(head[: len(header)]) == header]
    assert results, [head for head, _ in page.tables]
    return [row for row in results[0] if row]
