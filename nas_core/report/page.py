"""One HTML page that needs nothing beside itself: a Jinja2 template with styles, scripts and pictures inside."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.files import write_atomic
from nas_core.report.points import Points
from nas_core.report.tables import Table

_TEMPLATES = Path(__file__).parent / "templates"


class Page:
    """A page that is filled from top to bottom and rendered at the end.

    Args:
        title: heading and title. lead: sentence below it.
        reload_s: seconds after which a browser loads the page again; 0: never.
    """

    def __init__(self, title: str, lead: str = "", reload_s: int = 0) -> None:
        self.title, self.lead, self.reload_s = title, lead, reload_s
        self._parts: list[tuple[str, Any]] = []
        self._plots = 0

    def heading(self, text: str) -> None:
        """Add a heading."""
        self._parts.append(("heading", text))

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(("paragraph", text))

    def facts(self, facts: Mapping[str, object]) -> None:
        """Add names and values, one pair to a line."""
        self._parts.append(("facts", facts))

    def details(self, summary: str, facts: Mapping[str, object]) -> None:
        """Add facts that are folded away."""
        self._parts.append(("details", {"summary": summary, "facts": facts}))

    def table(self, table: Table) -> None:
        """Add a sortable table."""
        self._parts.append(("table", table))

    def image(self, png: bytes, alt: str, caption: str = "") -> None:
        """Add a picture."""
        data = base64.b64encode(png).decode("ascii")
        self._parts.append(("image", {"data": data, "alt": alt, "caption": caption}))

    def points(self, points: Points, first: int = 0, heading: str = "") -> None:
        """Add the rows behind the points of figures, see :class:`Points`: one or two of them, and a table of all.

        Args:
            first: number of the row that is shown first.
        """
        content = _json({**points.content, "first": first})
        part = {"noun": points.noun, "heading": heading or f"All {points.noun}s", "content": content}
        self._parts.append(("points", part))

    def plot(self, figure: Mapping[str, Any], alt: str, caption: str = "") -> None:
        """Add a plotly figure ``{"data": .., "layout": ..}``; see :mod:`nas_core.report.figures`."""
        self._plots += 1
        height = int(figure["layout"].get("height", 440))
        part = {"number": self._plots, "alt": alt, "caption": caption, "height": height, "content": _json(figure)}
        self._parts.append(("plot", part))

    def render(self) -> str:
        """Return the page's HTML, with plotly.js where it has figures."""
        from jinja2 import Environment, FileSystemLoader
        from markupsafe import Markup

        plotly = ""
        if self._plots:
            from plotly.offline import get_plotlyjs

            plotly = get_plotlyjs()
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        css, script = ((_TEMPLATES / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
        return environment.get_template("page.html").render(
            title=self.title, lead=self.lead, reload_s=self.reload_s, parts=self._parts,
            css=Markup(css), script=Markup(script), plotly=Markup(plotly),
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the page."""
        write_atomic(path, self.render())


def _json(content: Mapping[str, Any]) -> Any:
    """Return JSON in which no text can end the element that holds it."""
    from markupsafe import Markup

    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
