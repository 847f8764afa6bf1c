"""What lies behind the points of a page's figures, for any page: architectures, networks, predictors.

A page (:meth:`nas_core.report.Page.points`) takes :class:`Points`: rows that figures refer to by their numbers, from 0.
A figure says which row stands behind each of its points in a trace's ``customdata``: a list (no array) of such numbers,
None for points without one. The page then shows a row when its point is pointed at, lists all rows in a table that can
be sorted and filtered, and shows in full the one that is selected there or in a figure. Ranges of parallel coordinates
filter the rows that their ``customdata`` names. The page's script knows of a row only this:

- ``key``: the row's name in the page's address (``page.html#a=KEY``) and, without a ``title``, for people;
- ``values``: in the order of :attr:`Points.fields`, a number, a text or None; the columns of the table;
- ``about``: sentences; ``facts``: further names and values, for what is selected alone;
- ``genes``: of an architecture, those with a value per layer as lists; shown as tables and drawn;
- ``drawing``: side -> name -> a value per layer, where another drawing than that of the genes is wanted, or where there
  are no genes. Numbers are drawn as bars, words as coloured cells with letters (:attr:`Points.kinds`).

Rows without genes and without a drawing have neither. What a row lacks is left out of the file, which stays small with
hundreds of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nas_core.space.architecture import FORMAT, VERSION

__all__ = ["ARCHITECTURE_FILE", "Field", "Points", "Row"]

Value = float | str | None
Sides = Mapping[str, Mapping[str, Sequence[Any]]]
ARCHITECTURE_FILE = {"summary": "As an architecture file", "head": {"format": FORMAT, "version": VERSION}}
""":attr:`Points.file` of architectures."""


@dataclass(frozen=True)
class Field:
    """A value that rows have: a column of the table, and a line of what is shown of one row."""

    title: str
    unit: str = ""
    digits: int | None = None
    """Decimals of numbers; None for four significant digits."""

    @staticmethod
    def of(title: str, unit: str, spec: str) -> Field:
        """A field whose numbers have the decimals of a format such as ``.3f``."""
        return Field(title, unit, int(spec[1:-1]) if spec.startswith(".") and spec.endswith("f") else None)


@dataclass(frozen=True)
class Row:
    """One thing behind points of figures."""

    key: str
    values: Sequence[Value] = ()
    title: str = ""
    about: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    genes: Mapping[str, Any] = field(default_factory=dict)
    drawing: Sides = field(default_factory=dict)

    @property
    def content(self) -> dict[str, Any]:
        """The row in the form in which the page holds it."""
        values = [value if value != "" else None for value in self.values]
        while values and values[-1] is None:
            values.pop()
        told = {
            "title": self.title,
            "about": list(filter(None, self.about)),
            "facts": [[name, value] for name, value in self.facts.items()],
            "genes": dict(self.genes),
            "drawing": {side: dict(genes) for side, genes in self.drawing.items()},
        }
        return {"key": self.key, "values": values, **{name: value for name, value in told.items() if value}}


@dataclass(frozen=True)
class Points:
    """All rows of a page."""

    fields: Sequence[Field]
    rows: Sequence[Row]
    noun: str = "architecture"
    """What a row is, in the singular."""
    shown: Sequence[str] = ()
    """Genes that are worth showing, in this order; the others are called fixed."""
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Word -> (colour ``#rrggbb``, letter) in drawings; other words are grey, with their first letter."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """``summary``, a line for people, and ``head``: what stands before the genes in an architecture's file."""

    @property
    def content(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {
            "noun": self.noun,
            "fields": [{"title": one.title, "unit": one.unit, "digits": one.digits} for one in self.fields],
            "shown": list(self.shown),
            "kinds": {word: list(kind) for word, kind in self.kinds.items()},
            "file": dict(self.file),
            "rows": [row.content for row in self.rows],
        }
