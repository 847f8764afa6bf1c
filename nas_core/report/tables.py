"""Tables as plain text and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from nas_core.space import Architecture

MISSING = "-"


@dataclass(frozen=True)
class Column:
    """Column of a table."""

    key: str
    """Key in rows; also the column's name in CSV."""
    header: str
    """Title, with unit."""
    spec: str = ""
    """Number format, such as ``.2f``; aligned right."""

    def text(self, value: Any) -> str:
        """Return a value as text; ``-`` if it is missing or not finite."""
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return MISSING
        return format(value, self.spec) if isinstance(value, int | float) else str(value)


@dataclass(frozen=True)
class Table:
    """Table; a key missing in a row is an empty cell."""

    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def without_empty_columns(self) -> Table:
        columns = [c for c in self.columns if any(row.get(c.key) not in (None, "") for row in self.rows)]
        return Table(columns, self.rows)

    def cells(self) -> list[list[str]]:
        return [[column.text(row.get(column.key)) for column in self.columns] for row in self.rows]

    def text(self) -> str:
        """Return aligned plain text."""
        lines = [[column.header for column in self.columns], *self.cells()]
        widths = [max(len(line[index]) for line in lines) for index in range(len(self.columns))]
        lines.insert(1, ["-" * width for width in widths])
        fit: list[Callable[[str, int], str]] = [str.rjust if column.spec else str.ljust for column in self.columns]
        return "\n".join(
            "  ".join(align(cell, width) for align, cell, width in zip(fit, line, widths, strict=True)).rstrip()
            for line in lines
        )

    def csv(self) -> str:
        """Return CSV with unrounded numbers."""
        text = io.StringIO()
        keys = [column.key for column in self.columns]
        writer = csv.DictWriter(text, keys, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


def describe(architecture: Architecture) -> str:
    """Return all genes in one line, such as ``encoder: embed_dim 128, ffn_dim 512/384``; three equal layers are
    ``512x3``.
    """
    groups: dict[str, list[str]] = {}
    for name, gene in architecture.items():
        side, _, short_name = name.rpartition(".")
        layers = [
            (str(option), len(list(group))) for option, group in groupby(gene if isinstance(gene, tuple) else [gene])
        ]
        value = "/".join(f"{text}x{count}" if count > 2 else "/".join([text] * count) for text, count in layers)
        groups.setdefault(side, []).append(f"{short_name} {value}")
    order = sorted(groups, key=lambda side: (not side, side != "encoder", side))
    return "; ".join(f"{side}: {', '.join(groups[side])}" if side else ", ".join(groups[side]) for side in order)
