"""HTML pages in one file, from a Jinja2 template, with the rows behind figures' points."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nas_core.files.writing import write_atomic
from nas_core.report.tables import Table
from nas_core.space.architecture import FORMAT, VERSION

ARCHITECTURE_FILE = {"summary": "As an architecture file", "head": {"format": FORMAT, "version": VERSION}}
""":attr:`Points.file` of architectures."""
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Field:
    """Value of each row, a table column."""

    title: str
    unit: str = ""
    digits: int | None = None
    """Decimals of numbers; None: four significant digits."""


@dataclass(frozen=True)
class Row:
    """Architecture, network or record behind points of figures."""

    key: str
    """Name, also in the page's address."""
    values: Sequence[float | str | None] = ()
    """Values in the order of :attr:`Points.fields`."""
    title: str = ""
    """Displayed name; default: the key."""
    about: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """Names and values shown only for a selected row."""
    genes: Mapping[str, Any] = field(default_factory=dict)
    """Genes of an architecture; lists for genes of layers."""


@dataclass(frozen=True)
class Points:
    """All rows of a page.

    A trace's ``customdata`` holds the row number, from 0, behind each point. The page shows a row when its point is
    hovered, lists all rows in a table, and shows one selected row, or two for comparison.
    """

    fields: Sequence[Field]
    rows: Sequence[Row]
    noun: str = "architecture"
    """Singular noun for a row."""
    shown: Sequence[str] = ()
    """Genes shown, in this order."""
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Gene value -> colour ``#rrggbb`` and letter."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """``summary``, a line of text, and ``head``, the start of an architecture file."""

    @property
    def content(self) -> dict[str, Any]:
        return {
            "noun": self.noun,
            "fields": list(map(asdict, self.fields)),
            "genes": list(self.shown),
            "letters": {word: list(kind) for word, kind in self.kinds.items()},
            "file": dict(self.file) or None,
            "rows": [
                {"key": row.key, **{name: value for name, value in vars(row).items() if value}} for row in self.rows
            ],
        }


class Page:
    """Page filled from top to bottom.

    Args:
        lead: sentence below the title.
        reload_s: seconds after which a browser reloads the page; 0: never.
    """

    def __init__(self, title: str, lead: str = "", reload_s: int = 0) -> None:
        self.title, self.lead, self.reload_s = title, lead, reload_s
        self._parts: list[tuple[str, Any]] = []

    def heading(self, text: str) -> None:
        self._parts.append(("heading", text))

    def paragraph(self, text: str) -> None:
        self._parts.append(("paragraph", text))

    def facts(self, facts: Mapping[str, object]) -> None:
        """Add names and values, one pair a line, without empty ones."""
        self._parts.append(("facts", {name: value for name, value in facts.items() if value not in (None, "")}))

    def details(self, summary: str, facts: Mapping[str, object]) -> None:
        """Add folded facts."""
        self._parts.append(("details", {"summary": summary, "facts": facts}))

    def table(self, table: Table) -> None:
        self._parts.append(("table", table))

    def image(self, png: bytes, alt: str) -> None:
        self._parts.append(("image", {"data": base64.b64encode(png).decode("ascii"), "alt": alt}))

    def points(self, points: Points, first: int = 0, heading: str = "") -> None:
        """Add the rows behind figures' points, row ``first`` selected."""
        content = _json({**points.content, "first": first})
        part = {"noun": points.noun, "heading": heading or f"All {points.noun}s", "content": content}
        self._parts.append(("points", part))

    def plot(self, figure: Mapping[str, Any], alt: str, caption: str = "") -> None:
        """Add a plotly figure ``{"data": .., "layout": ..}``; see :mod:`nas_core.report.figures`."""
        height = int(figure["layout"].get("height", 440))
        number = sum(kind == "plot" for kind, _ in self._parts) + 1
        part = {"number": number, "alt": alt, "caption": caption, "height": height, "content": _json(figure)}
        self._parts.append(("plot", part))

    def render(self) -> str:
        """Return HTML, with plotly.js if there are figures."""
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
    """Return JSON in which no text can end the enclosing element."""
    from markupsafe import Markup

    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
