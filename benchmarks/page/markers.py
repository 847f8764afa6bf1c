"""Figures and tables on other pages, between comments that readers do not see.

``<!-- figure: KEY -->text<!-- /figure -->`` gets the figure of that key; it may not begin a line, where Markdown takes
a comment for a paragraph of its own. ``<!-- table: KEY -->`` with its end
``<!-- /table -->`` on lines of their own get a table. What stands in code is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.page.figures import TABLES, figures
from benchmarks.page.results import Results
from nas_core.errors import DataError, unknown_choice

__all__ = ["Markers", "pages"]

_CODE = re.compile(
    r"(?P<table><!-- table: [^>]*? -->\n.*?<!-- /table -->)"  # first, since tables of ours hold inline code
    r"|^[ \t]*(?P<fence>```+|~~~+).*?^[ \t]*(?P=fence)[ \t]*$|`[^`\n]*`",
    re.DOTALL | re.MULTILINE,
)
_FIGURE = re.compile(r"(<!-- figure: (?P<key>[^>]*?) -->)(?P<text>[^<]*)(<!-- /figure -->)")
_TABLE = re.compile(r"(<!-- table: (?P<key>[^>]*?) -->)\n(?P<text>.*?)(<!-- /table -->)", re.DOTALL)
_FIRST = re.compile(r"^[ \t>*+-]*<!-- figure\b", re.MULTILINE)
_OPEN = re.compile(r"<!--\s*/?\s*(figure|table)\b", re.IGNORECASE)


def pages(root: Path) -> list[Path]:
    """The pages of the project, without the one of results."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in found if page.exists() and page != root / "docs" / "results.md"]


class Markers:
    """What stands between the markers of pages, filled from results."""

    def __init__(self, results: Results, root: Path) -> None:
        self.results, self.root = results, root
        self._figures: Mapping[str, str] | None = None

    def filled(self, path: Path) -> str:
        """The text of a page with all figures as they are now.

        Raises:
            DataError: a marker without its end, or one of a figure at the beginning of a line.
            NasExtError: a key that the catalogue does not have.
        """
        text = path.read_text(encoding="utf-8")
        parts, end = [], 0
        for code in _CODE.finditer(text):
            kept = self._fill(code.group(), path) if code["table"] else code.group()
            parts += [self._fill(text[end : code.start()], path), kept]
            end = code.end()
        return "".join([*parts, self._fill(text[end:], path)])

    def _fill(self, text: str, path: Path) -> str:
        def figure(match: re.Match[str]) -> str:
            return f"{match[1]}{self._figure(match['key'], path)}{match[4]}"

        def table(match: re.Match[str]) -> str:
            return f"{match[1]}\n{self._table(match['key'], path)}\n{match[4]}"

        if _FIRST.search(text):
            raise DataError(f"{path}: a figure marker begins a line, which ends the paragraph; put a word before it")
        marked = len(_OPEN.findall(text))
        text, figures = _FIGURE.subn(figure, text)
        text, tables = _TABLE.subn(table, text)
        if marked != 2 * (figures + tables):
            raise DataError(f"{path}: a figure or table marker without its end, or one inside another")
        return text

    def _figure(self, key: str, path: Path) -> str:
        if self._figures is None:
            self._figures = figures(self.results)
        if key not in self._figures:
            raise unknown_choice(f"figure of {path.name}", key, self._figures)
        return self._figures[key]

    def _table(self, key: str, path: Path) -> str:
        if key not in TABLES:
            raise unknown_choice(f"table of {path.name}", key, TABLES)
        make: Callable[[Results, str], str] = TABLES[key]
        return make(self.results, os.path.relpath(self.root / "docs" / "results.md", path.parent))
