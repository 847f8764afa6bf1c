"""HTML pages in a single file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nas_core.files.writing import write_atomic
from nas_core.report.tables import Table
from nas_core.space.architecture import FORMAT, VERSION

ARCHITECTURE_FILE = {"summary": "As an architecture file", "head": {"format": FORMAT, "version": VERSION}}
"""Value of :attr:`Points.file` for rows that are architectures."""
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Field:
    """Column of a page's table."""

    title: str
    unit: str = ""
    digits: int | None = None
    """Number of decimals; None for four significant digits."""


@dataclass(frozen=True)
class Row:
    """Row of a page's table and point of its figures."""

    key: str
    """Identifier, also in the page's URL."""
    values: Sequence[float | str | None] = ()
    """Values in the order of :attr:`Points.fields`."""
    title: str = ""
    """Displayed name; default: ``key``."""
    about: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Name -> value, shown for the selected row."""
    genes: Mapping[str, Any] = field(default_factory=dict)
    """Genes; a list for values per layer."""


@dataclass(frozen=True)
class Points:
    """Table of a page whose rows are the points of its figures.

    The ``customdata`` of a trace contains the row index (from 0) of each point. The page shows the row of a hovered
    point, and one selected row, or two for comparison.
    """

    fields: Sequence[Field]
    rows: Sequence[Row]
    noun: str = "architecture"
    """Singular noun for a row."""
    shown: Sequence[str] = ()
    """Displayed genes, in this order."""
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Gene value -> colour ``#rrggbb`` and letter."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """``summary``: a line of text; ``head``: first fields of an architecture file."""

    @property
    def content(self) -> dict[str, Any]:
        """Content of the page's table, without empty columns."""
        columns = [
            index for index in range(len(self.fields)) if any(row.values[index] not in (None, "") for row in self.rows)
        ]
        rows = [vars(row) | {"values": [row.values[index] for index in columns]} for row in self.rows]
        return {
            "noun": self.noun,
            "fields": [asdict(self.fields[index]) for index in columns],
            "genes": list(self.shown),
            "letters": {word: list(kind) for word, kind in self.kinds.items()},
            "file": dict(self.file) or None,
            "rows": [{"key": row["key"], **{name: value for name, value in row.items() if value}} for row in rows],
        }


class Page:
    """HTML page; content is added from top to bottom.

    Args:
        lead: sentence below the title.
        reload_s: seconds after which the browser reloads the page; 0 never reloads.
    """

    def __init__(self, title: str, lead: str = "", reload_s: int = 0) -> None:
        self.title, self.lead, self.reload_s = title, lead, reload_s
        self._parts: list[tuple[str, Any]] = []

    def heading(self, text: str) -> None:
        self._parts.append(("heading", text))

    def paragraph(self, text: str) -> None:
        self._parts.append(("paragraph", text))

    def facts(self, facts: Mapping[str, object]) -> None:
        """Add names and values, without empty values."""
        self._parts.append(("facts", {name: value for name, value in facts.items() if value not in (None, "")}))

    def details(self, summary: str, facts: Mapping[str, object]) -> None:
        """Add collapsed names and values."""
        self._parts.append(("details", {"summary": summary, "facts": facts}))

    def table(self, table: Table) -> None:
        self._parts.append(("table", table))

    def points(self, points: Points, first: int = 0, heading: str = "") -> None:
        """Add a table; row ``first`` is selected."""
        content = _json({**points.content, "first": first})
        fields = {"noun": points.noun, "heading": heading or f"All {points.noun}s", "content": content}
        self._parts.append(("points", fields))

    def plot(self, figure: Mapping[str, Any], alt: str, caption: str = "") -> None:
        """Add a plotly figure."""
        height = int(figure["layout"].get("height", 440))
        number = sum(kind == "plot" for kind, _ in self._parts) + 1
        fields = {"number": number, "alt": alt, "caption": caption, "height": height, "content": _json(figure)}
        self._parts.append(("plot", fields))

    def render(self) -> str:
        """Return the page as HTML, with plotly.js if it has figures."""
        from jinja2 import Environment, FileSystemLoader
        from markupsafe import Markup

        plotly = ""
        if any(kind == "plot" for kind, _ in self._parts):
            from plotly.offline import get_plotlyjs

            plotly = get_plotlyjs()
        loader = FileSystemLoader(_TEMPLATES)
        environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
        css, script = ((_TEMPLATES / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
        return environment.get_template("page.html").render(
            title=self.title, lead=self.lead, reload_s=self.reload_s, parts=self._parts,
            css=Markup(css), script=Markup(script), plotly=Markup(plotly),
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        write_atomic(path, self.render())


def _json(content: Mapping[str, Any]) -> Any:
    # escaped so that no text can end the enclosing HTML element
    from markupsafe import Markup

    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
