"""Rows behind the points of a page's figures: architectures, networks, records.

A trace's ``customdata`` holds a row's number, from 0, for each of its points. The page shows the row when its point is
pointed at, lists all rows in a table, and shows one row, or two side by side, in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.space.architecture import FORMAT, VERSION

ARCHITECTURE_FILE = {"summary": "As an architecture file", "head": {"format": FORMAT, "version": VERSION}}
""":attr:`Points.file` of architectures."""


@dataclass(frozen=True)
class Field:
    """A value of each row: a column of the table."""

    title: str
    unit: str = ""
    digits: int | None = None
    """Decimals of numbers; None: four significant digits."""

    @staticmethod
    def of(title: str, unit: str, spec: str) -> Field:
        """Return a field whose numbers have the decimals of a format such as ``.3f``."""
        return Field(title, unit, int(spec[1:-1]) if spec.startswith(".") and spec.endswith("f") else None)


@dataclass(frozen=True)
class Row:
    """One thing behind points of figures."""

    key: str
    """Name in the page's address and, without a ``title``, for people."""
    values: Sequence[float | str | None] = ()
    """In the order of :attr:`Points.fields`."""
    title: str = ""
    about: Sequence[str] = ()
    """Sentences."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Names and values that are shown of a selected row alone."""
    genes: Mapping[str, Any] = field(default_factory=dict)
    """Genes of an architecture; those of layers are lists."""

    @property
    def content(self) -> dict[str, Any]:
        """The row as JSON."""
        optional = {
            "title": self.title,
            "about": list(filter(None, self.about)),
            "facts": dict(self.facts),
            "genes": dict(self.genes),
        }
        return {"key": self.key, "values": list(self.values), **{name: v for name, v in optional.items() if v}}


@dataclass(frozen=True)
class Points:
    """All rows of a page."""

    fields: Sequence[Field]
    rows: Sequence[Row]
    noun: str = "architecture"
    """A row's noun, in the singular."""
    shown: Sequence[str] = ()
    """Genes that are shown, in this order."""
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Word -> (colour ``#rrggbb``, letter) of values of genes."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """``summary``, a line for people, and ``head``: what precedes the genes in an architecture's file."""

    @property
    def content(self) -> dict[str, Any]:
        """The JSON that the page's script reads."""
        return {
            "noun": self.noun,
            "fields": [{"title": one.title, "unit": one.unit, "digits": one.digits} for one in self.fields],
            "genes": list(self.shown),
            "letters": {word: list(kind) for word, kind in self.kinds.items()},
            "file": dict(self.file) or None,
            "rows": [row.content for row in self.rows],
        }
